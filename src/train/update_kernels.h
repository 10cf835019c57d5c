// One step of an optimizer on one variable, fused: each element of the variable, its
// slots and its gradient is read once and written once. 16-bit elements are computed in
// float32 and rounded once. Tensors have the same shape and floating
// dtype; the gradient may lie on another device than the others.
#pragma once

#include <cohort/device/optimizer_arithmetic.h>
#include <cohort/device/tensor.h>

namespace cohort {

void sgd_step(const Tensor& variable, const Tensor& gradient, const SgdStep& step);

void momentum_step(const Tensor& variable, const Tensor& velocity, const Tensor& gradient,
                   const MomentumStep& step);

void adam_step(const Tensor& variable, const Tensor& first_moment, const Tensor& second_moment,
               const Tensor& gradient, const AdamStep& step);

}  // namespace cohort
