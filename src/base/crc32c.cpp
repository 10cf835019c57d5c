#include "crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <bit>

namespace cohort::detail {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  // ISA-L takes a length of 32 bits, and does not write through its pointer.
  constexpr std::size_t kMost = std::size_t{1} << 30;
  std::uint32_t crc = ~before;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(kMost, bytes.size()));
    crc = ::crc32_iscsi(reinterpret_cast<unsigned char*>(const_cast<std::byte*>(piece.data())),
                        static_cast<int>(piece.size()), crc);
    bytes = bytes.subspan(piece.size());
  }
  return ~crc;
}

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8;
}

}  // namespace cohort::detail
