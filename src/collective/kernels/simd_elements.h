// How the elements of each dtype are computed in vectors: the type in which they are stored,
// the accumulator in which they are combined, and the way from one to the other and back.
// Included once per target.
#if defined(COHORT_COLLECTIVE_SIMD_ELEMENTS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef COHORT_COLLECTIVE_SIMD_ELEMENTS_H
#undef COHORT_COLLECTIVE_SIMD_ELEMENTS_H
#else
#define COHORT_COLLECTIVE_SIMD_ELEMENTS_H
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <hwy/highway.h>

#include <cohort/device/float16.h>

#include "simd_memory.h"

HWY_BEFORE_NAMESPACE();
namespace cohort::HWY_NAMESPACE {

/// Which NaN comes out of an operation differs between processors, between operands that change places,
/// and so between code paths: a result has the quiet one without sign and payload instead.
template <class T>
HWY_INLINE Vector<T> with_one_nan(Vector<T> values) {
  if constexpr (std::is_floating_point_v<T>)
    return hn::IfThenElse(hn::IsNaN(values), hn::Set(Tag<T>(), std::numeric_limits<T>::quiet_NaN()), values);
  return values;
}

/// Numbers that are combined in the type in which they are stored.
template <class T>
struct ElementLanes {
  using Stored = T;
  using Accumulator = Vector<T>;

  static HWY_INLINE Accumulator load(const T* from) { return hn::LoadU(Tag<T>(), from); }
  static HWY_INLINE Accumulator widen(Vector<T> stored) { return stored; }
  static HWY_INLINE Vector<T> narrow(Accumulator accumulator) { return accumulator; }
  static HWY_INLINE Accumulator one_nan(Accumulator accumulator) { return with_one_nan<T>(accumulator); }

  template <class Op>
  static HWY_INLINE Accumulator combine(Accumulator a, Accumulator b) {
    return Op::combine(Tag<T>(), a, b);
  }
  static HWY_INLINE Accumulator divide(Accumulator a, std::size_t divisor) {
    const Tag<T> tag;
    return hn::Div(a, hn::Set(tag, static_cast<T>(divisor)));
  }
};

/// A vector of 16-bit floats, widened: twice as many bytes, so two vectors of float32.
struct FloatPair {
  Vector<float> first, second;
};

/// What both 16-bit types do with their pairs.
struct HalfLanes {
  using Stored = std::uint16_t;
  using Accumulator = FloatPair;

  template <class Op>
  static HWY_INLINE FloatPair combine(FloatPair a, FloatPair b) {
    const Tag<float> tag;
    return {Op::combine(tag, a.first, b.first), Op::combine(tag, a.second, b.second)};
  }
  static HWY_INLINE FloatPair one_nan(FloatPair pair) {
    return {with_one_nan<float>(pair.first), with_one_nan<float>(pair.second)};
  }
  static HWY_INLINE FloatPair divide(FloatPair a, std::size_t divisor) {
    const Vector<float> by = hn::Set(Tag<float>(), static_cast<float>(divisor));
    return {hn::Div(a.first, by), hn::Div(a.second, by)};
  }
};

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

/// One lane: the element types convert themselves, and the second half of the pair is not used.
template <class Half>
struct OneHalfLane : HalfLanes {
  static HWY_INLINE FloatPair load(const std::uint16_t* from) {
    return widen(hn::LoadU(Tag<std::uint16_t>(), from));
  }
  static HWY_INLINE FloatPair widen(Vector<std::uint16_t> stored) {
    const auto value = static_cast<float>(Half::from_bits(hn::GetLane(stored)));
    return {hn::Set(Tag<float>(), value), hn::Zero(Tag<float>())};
  }
  static HWY_INLINE Vector<std::uint16_t> narrow(FloatPair pair) {
    return hn::Set(Tag<std::uint16_t>(), Half(hn::GetLane(pair.first)).bits());
  }
};
template <>
struct ElementLanes<float16> : OneHalfLane<float16> {};
template <>
struct ElementLanes<bfloat16> : OneHalfLane<bfloat16> {};

#else

/// The processors' own conversion between float16 and float32 rounds to nearest even and keeps
/// subnormals, whatever the modes of the thread say; so its bits are those of class float16.
template <>
struct ElementLanes<float16> : HalfLanes {
  /// In two halves: conversion straight from memory needs no shuffle.
  static HWY_INLINE FloatPair load(const std::uint16_t* from) {
    const hn::Half<Tag<std::uint16_t>> half;
    return {promote(hn::LoadU(half, from)), promote(hn::LoadU(half, from + hn::MaxLanes(half)))};
  }
  static HWY_INLINE FloatPair widen(Vector<std::uint16_t> stored) {
    const hn::Half<Tag<std::uint16_t>> half;
    return {promote(hn::LowerHalf(half, stored)), promote(hn::UpperHalf(half, stored))};
  }
  static HWY_INLINE Vector<std::uint16_t> narrow(FloatPair pair) {
    return hn::Combine(Tag<std::uint16_t>(), demote(pair.second), demote(pair.first));
  }

 private:
  using HalfVector = hn::Vec<hn::Half<Tag<std::uint16_t>>>;

  static HWY_INLINE Vector<float> promote(HalfVector bits) {
    const hn::Rebind<hwy::float16_t, Tag<float>> tag;
    return hn::PromoteTo(Tag<float>(), hn::BitCast(tag, bits));
  }
  static HWY_INLINE HalfVector demote(Vector<float> values) {
    const hn::Rebind<hwy::float16_t, Tag<float>> tag;
    return hn::BitCast(hn::Half<Tag<std::uint16_t>>(), hn::DemoteTo(tag, values));
  }
};

/// A bfloat16 is the upper half of a float32. Elements with even index lie in the lower halves
/// of 32-bit words, those with odd index in the upper ones: a shift or a mask widens them, and
/// no lane moves. Rounding is done on integers: the processors' own conversion loses subnormals.
template <>
struct ElementLanes<bfloat16> : HalfLanes {
  static_assert(std::endian::native == std::endian::little);

  static HWY_INLINE FloatPair load(const std::uint16_t* from) {
    return widen(hn::LoadU(Tag<std::uint16_t>(), from));
  }
  static HWY_INLINE FloatPair widen(Vector<std::uint16_t> stored) {
    const Words words;
    const auto pairs = hn::BitCast(words, stored);
    return {hn::BitCast(Tag<float>(), hn::ShiftLeft<16>(pairs)),
            hn::BitCast(Tag<float>(), hn::And(pairs, hn::Set(words, 0xffff0000u)))};
  }
  /// Left to `narrow`, to which it is half the work.
  static HWY_INLINE FloatPair one_nan(FloatPair pair) { return pair; }

  /// To the nearest bfloat16, ties to even. The halves of all elements are put together first, so that the
  /// rest is done once for both. Infinities and NaNs need no care: those that come from bfloat16, or that the
  /// processor makes, have an empty lower half, so nothing is added to the upper one.
  static HWY_INLINE Vector<std::uint16_t> narrow(FloatPair pair) {
    const Words words;
    const Tag<std::uint16_t> tag;
    const auto even = hn::BitCast(words, pair.first);
    const auto odd = hn::BitCast(words, pair.second);
    const auto upper = hn::OddEven(hn::BitCast(tag, odd), hn::BitCast(tag, hn::ShiftRight<16>(even)));
    const auto lower = hn::OddEven(hn::BitCast(tag, hn::ShiftLeft<16>(odd)), hn::BitCast(tag, even));
    // Up where the lower half is above 0x8000, or is that and the upper one is odd.
    const auto is_even = hn::AndNot(upper, hn::Set(tag, std::uint16_t{1}));
    return with_one_nan_of_halves(hn::Add(upper, hn::ShiftRight<15>(hn::SaturatedSub(lower, is_even))));
  }

 private:
  using Words = Tag<std::uint32_t>;

  /// As with_one_nan, of float32.
  static HWY_INLINE Vector<std::uint16_t> with_one_nan_of_halves(Vector<std::uint16_t> bits) {
    const Tag<std::uint16_t> tag;
    const hn::RebindToSigned<Tag<std::uint16_t>> numbers;
    constexpr std::int16_t kInfinity = 0x7f80;
    const auto magnitude = hn::BitCast(numbers, hn::And(bits, hn::Set(tag, std::uint16_t{0x7fff})));
    const auto is_nan = hn::RebindMask(tag, hn::Gt(magnitude, hn::Set(numbers, kInfinity)));
    return hn::IfThenElse(is_nan, hn::Set(tag, std::uint16_t{0x7fc0}), bits);
  }
};

#endif

}  // namespace cohort::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
