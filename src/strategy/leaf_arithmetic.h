// The arithmetic of reductions on leaves, dense and sparse alike.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <cohort/strategy/cross_device_ops.h>

namespace cohort {

/// The dtype of a MEAN: integers become floating, wide enough for their values. Bool, which has no mean,
/// stays.
[[nodiscard]] DType mean_dtype(DType dtype);

/// @throws InvalidArgument when `op` is not defined for the dtype, or slices do not fit together.
void require_defined(ReduceOp op, const TensorOrSlices& leaf);

/// The operand of `op`: `leaf` itself, in the dtype of the result.
/// @throws as require_defined.
[[nodiscard]] TensorOrSlices prepared(ReduceOp op, const TensorOrSlices& leaf);

/// Of the dtypes that a MEAN converts: replicas that convert different ones to the same must be told apart.
[[nodiscard]] std::uint64_t converted_dtypes(ReduceOp op, std::span<const TensorOrSlices> leaves);

/// `name(i)` names the owner of component i.
/// @throws InvalidArgument naming one that differs from the first in kind, dtype or shape.
void require_alike(const Components& value, const std::function<std::string(std::size_t)>& name);

/// Prepared components, which are alike, become one: dense ones element by element in this order, rows of
/// sparse ones are concatenated.
[[nodiscard]] TensorOrSlices reduced(ReduceOp op, std::span<const TensorOrSlices> components);

/// Divides the elements of a prepared leaf, in place.
void divide(const TensorOrSlices& leaf, std::size_t divisor);

/// `result` itself for the first destination on its device, copies for the others.
[[nodiscard]] Components placed(const TensorOrSlices& result, const Destinations& destinations);

}  // namespace cohort
