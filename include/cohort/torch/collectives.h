// Collectives that libtorch differentiates through. Each is an autograd function whose
// backward pass is the transposed collective, so all replicas of the current strategy call
// them, and `backward`, in the same order. Outside any scope the caller is the only replica.
#pragma once

#include <ATen/Tensor.h>

#include <cohort/collective/reduce_op.h>

namespace cohort::libtorch {

/// The SUM or MEAN of all replicas' values. Its gradient is that all-reduce of their gradients.
[[nodiscard]] at::Tensor all_reduce(ReduceOp op, const at::Tensor& value);

/// The replicas' values concatenated along `axis`, where their lengths may differ. Its gradient is this
/// replica's part of the sum of their gradients.
[[nodiscard]] at::Tensor all_gather(const at::Tensor& value, int axis);

}  // namespace cohort::libtorch
