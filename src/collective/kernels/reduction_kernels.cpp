// Compiled once per instruction set, by including itself: the kernels of every dtype and
// operator, and their choice at run time.
#include <cstddef>
#include <type_traits>

#include <cohort/collective/reduction.h>

#include "reduce_tensors.h"
#include "simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collective/kernels/reduction_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "simd_reduction.h"

HWY_BEFORE_NAMESPACE();
namespace cohort::HWY_NAMESPACE {

/// The type in which elements of type T are computed, as far as the bits of the result differ:
/// sums and products of integers wrap, so signed and unsigned are one; the extremes of bool are
/// those of 0 and 1.
template <class Op, class T>
struct Computed : std::type_identity<T> {};
template <class T>
struct Computed<Sum, T>
    : std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>> {};
template <class T>
struct Computed<Product, T>
    : std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>> {};
template <>
struct Computed<Min, bool> : std::type_identity<std::uint8_t> {};
template <>
struct Computed<Max, bool> : std::type_identity<std::uint8_t> {};

template <class Op, class T>
inline constexpr bool kLegal = std::is_same_v<Op, Min> || std::is_same_v<Op, Max> ||
                               (!std::is_same_v<T, bool> && (!Op::kDivides || !std::is_integral_v<T>));

template <class Op>
ReductionKernel kernel_of(DType dtype) {
  return visit_dtype(dtype, []<class T>(std::type_identity<T>) -> ReductionKernel {
    if constexpr (kLegal<Op, T>) return &reduce<typename Computed<Op, T>::type, Op>;
    return nullptr;
  });
}

ReductionKernel find_reduction(DType dtype, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return kernel_of<Sum>(dtype);
    case ReduceOp::kMean: return kernel_of<Mean>(dtype);
    case ReduceOp::kMin: return kernel_of<Min>(dtype);
    case ReduceOp::kMax: return kernel_of<Max>(dtype);
    case ReduceOp::kProd: return kernel_of<Product>(dtype);
  }
  return nullptr;
}

DivisionKernel find_division(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return &divide<float16>;
    case DType::kBFloat16: return &divide<bfloat16>;
    case DType::kFloat32: return &divide<float>;
    case DType::kFloat64: return &divide<double>;
    default: return nullptr;
  }
}

}  // namespace cohort::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cohort {

HWY_EXPORT(find_reduction);
HWY_EXPORT(find_division);

ReductionKernel best_reduction(DType dtype, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(find_reduction)(dtype, op);
}

DivisionKernel best_division(DType dtype) { return HWY_DYNAMIC_DISPATCH(find_division)(dtype); }

}  // namespace cohort
#endif
