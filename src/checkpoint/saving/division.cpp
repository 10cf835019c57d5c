#include "division.h"

#include <algorithm>

namespace cohort::checkpoint {

namespace {

std::uint64_t bytes_of(const Divisible& value) {
  return value.bytes_of_row * static_cast<std::uint64_t>(value.rows);
}

}  // namespace

std::vector<Part> divide(const std::vector<Divisible>& values, int workers) {
  const auto count_of_workers = static_cast<std::uint64_t>(workers);
  std::uint64_t total = 0;
  for (const Divisible& value : values) total += bytes_of(value);
  const std::uint64_t share = std::max<std::uint64_t>((total + count_of_workers - 1) / count_of_workers, 1);

  std::vector<Part> parts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Divisible& value = values[i];
    // An empty value has one part, too, so that it is found in a file.
    const std::uint64_t pieces = std::max<std::uint64_t>((bytes_of(value) + share - 1) / share, 1);
    const auto count =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(pieces), 1, std::max<std::int64_t>(value.rows, 1));
    for (std::int64_t n = 0, row = 0; n < count; ++n) {
      const std::int64_t rows = value.rows / count + (n < value.rows % count ? 1 : 0);
      parts.push_back({i, row, rows, 0});
      row += rows;
    }
  }

  // The largest first, each to the worker that has the least: Graham's rule, at most 4/3 of the optimum.
  const auto bytes_of_part = [&](const Part& part) {
    return values[part.value].bytes_of_row * static_cast<std::uint64_t>(part.rows);
  };
  std::vector<std::uint64_t> load(static_cast<std::size_t>(workers));
  std::vector<Part*> by_size;
  by_size.reserve(parts.size());
  for (Part& part : parts) by_size.push_back(&part);
  std::ranges::stable_sort(by_size, std::ranges::greater(),
                           [&](const Part* part) { return bytes_of_part(*part); });
  for (Part* part : by_size) {
    const auto least = std::ranges::min_element(load);
    *least += bytes_of_part(*part);
    part->worker = static_cast<int>(least - load.begin());
  }
  return parts;
}

}  // namespace cohort::checkpoint
