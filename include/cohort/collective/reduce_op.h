// The reduction operators, their names, and which dtype each of them accepts.
#pragma once

#include <string_view>

#include <cohort/device/dtype.h>

namespace cohort {

enum class ReduceOp { kSum, kMean, kMin, kMax, kProd };

/// `sum`, `mean`, `min`, `max` or `prod`.
[[nodiscard]] std::string_view to_string(ReduceOp op) noexcept;

/// The inverse of `to_string`, in any case. @throws InvalidArgument listing the names.
[[nodiscard]] ReduceOp parse_reduce_op(std::string_view name);

/// bool takes MIN and MAX only; the MEAN of integers is a fraction and therefore refused.
[[nodiscard]] constexpr bool is_legal(ReduceOp op, DType dtype) noexcept {
  if (dtype == DType::kBool) return op == ReduceOp::kMin || op == ReduceOp::kMax;
  return op != ReduceOp::kMean || is_floating(dtype);
}

namespace detail {
[[noreturn]] void throw_not_legal(ReduceOp op, DType dtype);
}

/// @throws InvalidArgument saying what to use instead of what is not legal.
inline void require_legal(ReduceOp op, DType dtype) {
  if (!is_legal(op, dtype)) [[unlikely]]
    detail::throw_not_legal(op, dtype);
}

/// Whether the order in which members are combined can show in the bits of the result: where
/// intermediate results are rounded.
[[nodiscard]] bool depends_on_order(ReduceOp op, DType dtype) noexcept;

}  // namespace cohort
