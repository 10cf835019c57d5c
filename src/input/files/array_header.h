// What a file's header says about its array, before it is checked.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>

namespace cohort::detail {

struct ArrayHeader {
  DType dtype = DType::kUInt8;
  std::endian byte_order = std::endian::native;
  std::vector<std::int64_t> extents = {};  ///< outermost first
};

/// What its elements take; nothing when that is 2^63 or more. A row's size is checked even if there are no
/// rows.
[[nodiscard]] std::optional<std::uint64_t> bytes_of(const ArrayHeader& header);

/// The shape, checked to have `bytes` bytes and at least one row. `place` names the file, and the array in
/// it.
/// @throws InvalidArgument for an array without rows to iterate over; DataLoss when the sizes differ.
[[nodiscard]] Shape checked_shape(const ArrayHeader& header, std::uint64_t bytes, const std::string& place);

}  // namespace cohort::detail
