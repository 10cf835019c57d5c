// The arithmetic of reduction.h on tensors, wherever they lie, and the vectorised kernels behind it.
#pragma once

#include <cstddef>
#include <span>

#include <cohort/collective/reduce_op.h>
#include <cohort/collective/reduction.h>
#include <cohort/device/tensor.h>

namespace cohort {

/// inputs[0] op inputs[1] op ..., from left to right, in a new tensor on the device of the first; MEAN
/// divides by their number. There is at least one; all have one shape and one dtype, which `op` takes.
[[nodiscard]] Tensor reduced(ReduceOp op, std::span<const Tensor> inputs);

/// The same into `output`, which may be one of the inputs.
void reduce_into(ReduceOp op, std::span<const Tensor> inputs, const Tensor& output);

/// Divides the elements of a floating tensor, rounding once.
void divide(const Tensor& tensor, std::size_t divisor);

// ---- the kernels for the best instruction set of this processor

/// Null where the operator is not legal for the dtype.
ReductionKernel best_reduction(DType dtype, ReduceOp op);

using DivisionKernel = void (*)(std::byte* data, std::size_t elements, std::size_t divisor);

/// Null for integers and bool.
DivisionKernel best_division(DType dtype);

}  // namespace cohort
