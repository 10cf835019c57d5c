// One step of an optimizer on one variable, fused: each element of the variable, its
// slots and its gradient is read once and written once. Tensors have the same shape and
// floating dtype; the gradient may lie on another device than the others.
#pragma once

#include <span>

#include <cohort/device/tensor.h>

#include "device/optimizer_step.h"

namespace cohort {

/// `slots` are as many as the rule of the step has.
void apply_step(const OptimizerStep& step, const Tensor& variable, std::span<const Tensor> slots,
                const Tensor& gradient);

}  // namespace cohort
