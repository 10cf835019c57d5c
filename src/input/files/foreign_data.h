// Data that other programs wrote, perhaps on another machine: bytes in an order of their own, elements that
// may be none, files that are compressed, text of any length, and the frames of TFRecord.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <cohort/device/tensor.h>

#include "input_file.h"

namespace cohort::detail {

/// The number in the first `sizeof(T)` bytes.
template <std::unsigned_integral T>
[[nodiscard]] T load(std::span<const std::byte> bytes, std::endian order) {
  std::byte copy[sizeof(T)];
  std::memcpy(copy, bytes.data(), sizeof(T));
  if (order != std::endian::native) std::reverse(copy, copy + sizeof(T));
  return std::bit_cast<T>(copy);
}

template <std::unsigned_integral T>
void store(T value, std::span<std::byte> bytes, std::endian order) {
  std::memcpy(bytes.data(), &value, sizeof(T));
  if (order != std::endian::native) std::reverse(bytes.data(), bytes.data() + sizeof(T));
}

/// Reverses the bytes of each element.
void swap_bytes(const Tensor& tensor);

/// Refuses bytes other than 0 and 1 in a bool tensor, since reading them as bool is undefined. `offset` is
/// where the tensor lies in the file. @throws DataLoss naming the byte.
void require_valid_elements(const Tensor& tensor, const std::string& path, std::uint64_t offset);

/// For the end of a message about a file of a wrong format: says that the file is compressed as a whole,
/// which no reader here unpacks, and what to do, if its `start` is that of such a file; otherwise
/// `otherwise`.
[[nodiscard]] std::string_view compression_hint(std::span<const std::byte> start, std::string_view otherwise);
[[nodiscard]] std::string_view compression_hint(MappedFile& file, std::string_view otherwise);

/// Text for a message: the first 40 characters, with ... in place of the rest; characters that cannot be
/// printed become \xNN.
[[nodiscard]] std::string excerpt(std::string_view text);

/// What stands around the bytes of a record in a TFRecord file.
struct TfRecordFrame {
  std::array<std::byte, 12> header{};  ///< the length, and its checksum
  std::array<std::byte, 4> footer{};   ///< the checksum of the bytes
};

[[nodiscard]] TfRecordFrame frame_of(std::span<const std::byte> record);

}  // namespace cohort::detail
