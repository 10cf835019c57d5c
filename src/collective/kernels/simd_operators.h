// The reduction operators on two vectors. Included once per target.
#if defined(COHORT_COLLECTIVE_SIMD_OPERATORS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef COHORT_COLLECTIVE_SIMD_OPERATORS_H
#undef COHORT_COLLECTIVE_SIMD_OPERATORS_H
#else
#define COHORT_COLLECTIVE_SIMD_OPERATORS_H
#endif

#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cohort::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// An operator combines two accumulators; a mean is then divided by the number of inputs.
struct Sum {
  static constexpr bool kDivides = false;
  template <class D, class V>
  static HWY_INLINE V combine(D /*tag*/, V a, V b) {
    return hn::Add(a, b);
  }
};

struct Mean : Sum {
  static constexpr bool kDivides = true;
};

template <bool kSmallest>
struct Extremum {
  static constexpr bool kDivides = false;
  template <class D, class V>
  static HWY_INLINE V combine([[maybe_unused]] D tag, V a, V b) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      // Equal numbers have equal bits, except for the zeros: -0 is less than +0, so that the
      // order of operands never shows. A NaN wins; the sum carries it on.
      const V tie = kSmallest ? hn::Or(a, b) : hn::And(a, b);
      const V nearest = hn::IfThenElse(kSmallest ? hn::Lt(a, b) : hn::Gt(a, b), a, b);
      const V number = hn::IfThenElse(hn::Eq(a, b), tie, nearest);
      return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::Add(a, b), number);
    } else {
      return kSmallest ? hn::Min(a, b) : hn::Max(a, b);
    }
  }
};

using Min = Extremum<true>;
using Max = Extremum<false>;

struct Product {
  static constexpr bool kDivides = false;
  template <class D, class V>
  static HWY_INLINE V combine([[maybe_unused]] D tag, V a, V b) {
    if constexpr (sizeof(hn::TFromD<D>) == 1) {
      return bytes(tag, a, b);
    } else {
      return hn::Mul(a, b);
    }
  }

 private:
  /// No instruction set multiplies bytes: those with odd index are multiplied in the upper
  /// halves of 16-bit lanes, those with even index in the lower ones.
  template <class D, class V>
  static HWY_INLINE V bytes([[maybe_unused]] D tag, V a, V b) {
    if constexpr (hn::MaxLanes(D()) == 1) {
      return hn::Set(tag, static_cast<std::uint8_t>(hn::GetLane(a) * hn::GetLane(b)));
    } else {
      const hn::Repartition<std::uint16_t, D> wide;
      const auto wide_a = hn::BitCast(wide, a);
      const auto wide_b = hn::BitCast(wide, b);
      const auto even = hn::Mul(wide_a, wide_b);
      const auto odd = hn::Mul(hn::And(wide_a, hn::Set(wide, 0xff00)), hn::ShiftRight<8>(wide_b));
      return hn::BitCast(tag, hn::Or(hn::And(even, hn::Set(wide, 0x00ff)), odd));
    }
  }
};

}  // namespace cohort::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
