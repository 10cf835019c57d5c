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

/// Copies less than two pieces, in pieces of powers of two down to `kSmallest`: each is a load and a store.
template <std::size_t kPiece, std::size_t kSmallest>
HWY_INLINE void copy_pieces(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t whole = bytes & kPiece;
  if (whole != 0) std::memcpy(to, from, kPiece);
  if constexpr (kPiece > kSmallest) copy_pieces<kPiece / 2, kSmallest>(to + whole, from + whole, bytes);
}

template <class T>
HWY_INLINE void store_first(Vector<T> vector, T* to, std::size_t count) {
  const Tag<T> tag;
  if constexpr (HWY_TARGET == HWY_AVX3) {
    hn::BlendedStore(vector, hn::FirstN(tag, count), tag, to);
  } else {
    // AVX2 has a store with a mask, too, which takes 3.9 ns on an EPYC of 2021, and this 0.6.
    T lanes[kLanes<T>];  // not aligned: the stack would have to be
    hn::StoreU(vector, tag, lanes);
    copy_pieces<kVectorBytes<T> / 2, sizeof(T)>(reinterpret_cast<std::byte*>(to),
                                                reinterpret_cast<const std::byte*>(lanes), count * sizeof(T));
  }
}

/// How many bytes lie between `pointer` and the vector boundary after it.
template <class T>
HWY_INLINE std::size_t bytes_to_boundary(const void* pointer) {
  return (0 - reinterpret_cast<std::uintptr_t>(pointer)) % kVectorBytes<T>;
}

inline constexpr std::size_t kCacheLine = 64;

}  // namespace cohort::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
