// How data that does not fit a slot moves on a node.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cohort::node {

enum class Protocol : std::uint8_t {
  kPieces,      ///< through cells, piece by piece
  kDirect,      ///< members read and write each other's tensors, which all can address
  kSingleCopy,  ///< the kernel copies from one member's memory to another's
};
inline constexpr std::array kProtocols{Protocol::kPieces, Protocol::kDirect, Protocol::kSingleCopy};

/// As benchmarks and COHORT_ALGORITHM name it, for example `single_copy`.
[[nodiscard]] constexpr std::string_view to_string(Protocol protocol) noexcept {
  switch (protocol) {
    case Protocol::kPieces: return "pieces";
    case Protocol::kDirect: return "direct";
    case Protocol::kSingleCopy: return "single_copy";
  }
  return "unknown";
}

}  // namespace cohort::node
