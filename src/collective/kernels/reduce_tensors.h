// The arithmetic of reduction.h on tensors, wherever they lie.
#pragma once

#include <cstddef>
#include <span>

#include <cohort/collective/reduce_op.h>
#include <cohort/device/tensor.h>

namespace cohort {

/// inputs[0] op inputs[1] op ..., from left to right, in a new tensor on the device of the first; MEAN
/// divides by their number. There is at least one; all have one shape and one dtype, which `op` takes.
[[nodiscard]] Tensor reduced(ReduceOp op, std::span<const Tensor> inputs);

/// The same into `output`, which may be one of the inputs.
void reduce_into(ReduceOp op, std::span<const Tensor> inputs, const Tensor& output);

/// Divides the elements of a floating tensor, rounding once.
void divide(const Tensor& tensor, std::size_t divisor);

}  // namespace cohort
