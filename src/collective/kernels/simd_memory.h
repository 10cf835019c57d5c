// Vectors of the target being compiled, and how they come from memory and go back: whole,
// in part at the end of a buffer, or past the caches. Included once per target.
#if defined(COHORT_COLLECTIVE_SIMD_MEMORY_H) == defined(HWY_TARGET_TOGGLE)
#ifdef COHORT_COLLECTIVE_SIMD_MEMORY_H
#undef COHORT_COLLECTIVE_SIMD_MEMORY_H
#else
#define COHORT_COLLECTIVE_SIMD_MEMORY_H
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace cohort::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The fallback for processors without any of the other instruction sets works on one element
/// at a time, in plain C++: Highway's emulated vectors do not round subnormals of float16.
inline constexpr bool kOneLane = HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128;

template <class T>
using Tag = std::conditional_t<kOneLane, hn::CappedTag<T, 1>, hn::ScalableTag<T>>;
template <class T>
using Vector = hn::Vec<Tag<T>>;
template <class T>
inline constexpr std::size_t kLanes = hn::MaxLanes(Tag<T>());
template <class T>
inline constexpr std::size_t kVectorBytes = kLanes<T> * sizeof(T);

/// Whether masked-out lanes are never touched, not even at the end of the last mapped page.
/// AVX2 masks words of 4 and 8 bytes in hardware; for smaller ones Highway reads them all.
template <class T>
inline constexpr bool kMasksMemory = HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_AVX2 && sizeof(T) >= 4);

/// The first `count` elements at `from`, 0 < count < kLanes; the other lanes are zero.
template <class T>
HWY_INLINE Vector<T> load_first(const T* from, std::size_t count) {
  const Tag<T> tag;
  if constexpr (kMasksMemory<T>) {
    return hn::MaskedLoad(hn::FirstN(tag, count), tag, from);
  } else {
    alignas(64) T lanes[kLanes<T>] = {};
    std::memcpy(lanes, from, count * sizeof(T));
    return hn::Load(tag, lanes);
  }
}

template <class T>
HWY_INLINE void store_first(Vector<T> vector, T* to, std::size_t count) {
  const Tag<T> tag;
  if constexpr (kMasksMemory<T>) {
    hn::BlendedStore(vector, hn::FirstN(tag, count), tag, to);
  } else {
    alignas(64) T lanes[kLanes<T>];
    hn::Store(vector, tag, lanes);
    std::memcpy(to, lanes, count * sizeof(T));
  }
}

/// How many bytes lie between `pointer` and the vector boundary after it.
template <class T>
HWY_INLINE std::size_t bytes_to_boundary(const void* pointer) {
  return (0 - reinterpret_cast<std::uintptr_t>(pointer)) % kVectorBytes<T>;
}

inline constexpr std::size_t kCacheLine = 64;

HWY_INLINE void prefetch_to_read(const std::byte* line) { hwy::Prefetch(line); }

}  // namespace cohort::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
