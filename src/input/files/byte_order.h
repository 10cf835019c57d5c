// Numbers in files, whose bytes have an order of their own.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>

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

}  // namespace cohort::detail
