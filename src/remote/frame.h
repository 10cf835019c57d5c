// How messages lie in a stream of bytes, be it a ring in shared memory or a TCP connection: a header, the
// body, and zeros up to a multiple of the alignment, so that every body begins at one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace cohort::remote {

enum class FrameType : std::uint16_t {
  kMessage = 1,
  kSignOfLife = 2,  ///< has no body, and is not handed over
};

struct FrameHeader {
  FrameType type = FrameType::kMessage;
  std::uint16_t kind = 0;
  std::uint32_t unused = 0;
  std::uint64_t number = 0;
  std::uint64_t body_bytes = 0;
  std::uint64_t large_bytes = 0;  ///< the last ones of the body, if the receiver may say where they go
};
static_assert(sizeof(FrameHeader) == 32);

inline constexpr std::size_t kFrameAlignment = 16;
static_assert(sizeof(FrameHeader) % kFrameAlignment == 0);

/// Another task's bytes are not what they should be, or too many: its connection cannot go on.
class BrokenStream : public std::runtime_error {
  using runtime_error::runtime_error;
};

/// Zeros behind a body.
[[nodiscard]] constexpr std::size_t padding_after(std::uint64_t body_bytes) noexcept {
  return static_cast<std::size_t>(-body_bytes % kFrameAlignment);
}

/// From this size on the receiver is asked where the large part of a body goes.
inline constexpr std::size_t kLargeBytes = std::size_t{256} << 10;

/// Frames up to this size are handed over where they lie; the bodies of longer ones are put together in
/// memory of their own. Rings and buffers have room for several.
inline constexpr std::size_t kWholeFrameBytes = std::size_t{64} << 10;

/// More than any machine has: a header that says more is damaged.
inline constexpr std::uint64_t kLongestBody = std::uint64_t{1} << 44;

}  // namespace cohort::remote
