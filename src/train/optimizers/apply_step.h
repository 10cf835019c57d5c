// One step of an optimizer on one variable, fused: each element of the variable, its
// slots and its gradient is read once and written once. Tensors have the same shape and
// floating dtype, slots that of the master if there is one; the gradient may lie on another
// device than the others.
#pragma once

#include <span>

#include <cohort/device/tensor.h>
#include <cohort/train/optimizers/step_arguments.h>

#include "device/rules/optimizer_step.h"

namespace cohort {

/// `slots` are those of the rule, and those that the arguments name.
void apply_step(const OptimizerRule& rule, const StepArguments& arguments, const Tensor& variable,
                std::span<const Tensor> slots, const Tensor& gradient);

}  // namespace cohort
