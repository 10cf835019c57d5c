// The checksum of TFRecord: CRC-32C (Castagnoli), masked, because a checksum over data that holds
// its own checksum tells nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cohort::detail {

/// Of `bytes` alone, or of what has the checksum `before` and then `bytes`.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

[[nodiscard]] std::uint32_t masked_crc32c(std::span<const std::byte> bytes);

}  // namespace cohort::detail
