// What a file says of the array in it, before it is believed.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>

namespace cohort::detail {

struct ArrayHeader {
  DType dtype = DType::kUInt8;
  std::endian byte_order = std::endian::native;
  std::vector<std::int64_t> extents;  ///< outermost first
};

/// The shape, of `bytes` bytes and with a row at least. `place` is the file, and what in it.
/// @throws InvalidArgument for what has no rows to iterate over; DataLoss when `bytes` is another number.
[[nodiscard]] Shape checked_shape(const ArrayHeader& header, std::uint64_t bytes, const std::string& place);

}  // namespace cohort::detail
