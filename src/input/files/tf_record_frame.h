// What stands around the bytes of a record in a TFRecord file.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace cohort::detail {

struct TfRecordFrame {
  std::array<std::byte, 12> header{};  ///< the length, and its checksum
  std::array<std::byte, 4> footer{};   ///< the checksum of the bytes
};

[[nodiscard]] TfRecordFrame frame_of(std::span<const std::byte> record);

}  // namespace cohort::detail
