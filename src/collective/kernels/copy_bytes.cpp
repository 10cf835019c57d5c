// Compiled once per instruction set, by including itself.
#include <cohort/collective/copy_bytes.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "prefetch.h"
#include "simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collective/kernels/copy_bytes.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "simd_memory.h"

HWY_BEFORE_NAMESPACE();
namespace cohort::HWY_NAMESPACE {

using Byte = std::uint8_t;

/// From here on memcpy is as fast, and near the size of the last-level cache faster: there it
/// turns to stores past the caches by itself.
inline constexpr std::size_t kLongCopy = std::size_t{1} << 20;

/// Where the target's cache lines lie in another core's cache, fetching them early takes a tenth to a third
/// off; elsewhere it costs nothing.
inline constexpr std::size_t kWritesAhead = 512;

/// Returns how much it has copied: whole vectors.
template <bool kStreams>
HWY_INLINE std::size_t copy_vectors(Byte* to, const Byte* from, std::size_t bytes) {
  constexpr std::size_t kStep = kVectorBytes<Byte>;
  const Tag<Byte> tag;
  std::size_t at = 0;
  for (; at + 4 * kStep <= bytes; at += 4 * kStep) {
    Vector<Byte> block[4];
    if constexpr (!kStreams) {
      for (std::size_t line = 0; line < 4 * kStep; line += kCacheLine)
        prefetch_to_write(to + at + kWritesAhead + line);
    }
    for (std::size_t v = 0; v < 4; ++v) block[v] = hn::LoadU(tag, from + at + v * kStep);
    for (std::size_t v = 0; v < 4; ++v) {
      if constexpr (kStreams) {
        hn::Stream(block[v], tag, to + at + v * kStep);
      } else {
        hn::StoreU(block[v], tag, to + at + v * kStep);
      }
    }
  }
  for (; at + kStep <= bytes; at += kStep) hn::StoreU(hn::LoadU(tag, from + at), tag, to + at);
  return at;
}

HWY_INLINE void copy_part(Byte* to, const Byte* from, std::size_t bytes) {
  if constexpr (kMasksMemory<Byte>) {
    if (bytes != 0) store_first(load_first(from, bytes), to, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

void stream_bytes(Byte* to, const Byte* from, std::size_t bytes) {
  const std::size_t head = std::min(bytes, bytes_to_boundary<Byte>(to));
  copy_part(to, from, head);
  const std::size_t done = head + copy_vectors<true>(to + head, from + head, bytes - head);
  copy_part(to + done, from + done, bytes - done);
  hwy::FlushStream();
}

void copy(std::byte* to, const std::byte* from, std::size_t bytes, CopyHint hint) {
  if (to == from || bytes == 0) return;
  auto* target = reinterpret_cast<Byte*>(to);
  const auto* source = reinterpret_cast<const Byte*>(from);
  if (hint == CopyHint::kStream) return stream_bytes(target, source, bytes);
  if (kOneLane || bytes > kLongCopy) {
    std::memcpy(to, from, bytes);
  } else {
    const std::size_t done = copy_vectors<false>(target, source, bytes);
    copy_part(target + done, source + done, bytes - done);
  }
}

CopyKernel find_copy() { return &copy; }

}  // namespace cohort::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cohort {

HWY_EXPORT(find_copy);

CopyKernel copy_kernel() { return HWY_DYNAMIC_DISPATCH(find_copy)(); }

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, CopyHint hint) {
  copy_kernel()(to, from, bytes, hint);
}

}  // namespace cohort
#endif
