#include "array_header.h"

#include <algorithm>

#include <fmt/ranges.h>

#include <cohort/base/error.h>

namespace cohort::detail {

std::optional<std::uint64_t> bytes_of(const ArrayHeader& header) {
  auto bytes = static_cast<std::int64_t>(size_of(header.dtype));
  // The rows last, so that 0 rows do not hide the size of one.
  for (std::size_t axis = header.extents.size(); axis-- > 0;) {
    const std::int64_t extent = header.extents[axis];
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return static_cast<std::uint64_t>(bytes);
}

Shape checked_shape(const ArrayHeader& header, std::uint64_t bytes, const std::string& place) {
  const std::string text = fmt::format("{}[{}]", to_string(header.dtype), fmt::join(header.extents, ", "));
  if (header.extents.empty() || header.extents.size() > Shape::kLargestRank) {
    throw InvalidArgument(
        "{}: an array {} cannot be iterated over; it must have from 1 to {} axes, the first "
        "of which counts the elements",
        place, text, Shape::kLargestRank);
  }
  if (std::find(header.extents.begin() + 1, header.extents.end(), 0) != header.extents.end())
    throw InvalidArgument("{}: the rows of {} are empty; there is nothing to read", place, text);
  const std::optional<std::uint64_t> wanted = bytes_of(header);
  if (!wanted || *wanted != bytes) {
    throw DataLoss(
        "{}: the header promises {}, {} bytes, but {} bytes follow it; the file is truncated or "
        "damaged, so write it again",
        place, text, wanted ? fmt::format("{}", *wanted) : "2^63 or more", bytes);
  }
  return Shape(header.extents);
}

}  // namespace cohort::detail
