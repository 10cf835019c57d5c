// One step of an optimizer on one variable, fused: each element of the variable, its
// slots and its gradient is read once and written once. 16-bit elements are computed in
// float32 and rounded once. Tensors have the same shape and floating dtype.
#pragma once

#include <cohort/device/tensor.h>

namespace cohort {

/// variable -= rate * gradient
void sgd_step(const Tensor& variable, const Tensor& gradient, double rate);

struct MomentumStep {
  double rate = 0;
  double momentum = 0;
  bool nesterov = false;
};

/// velocity = momentum * velocity - rate * gradient; variable += velocity, or, with
/// `nesterov`, momentum * velocity - rate * gradient.
void momentum_step(const Tensor& variable, const Tensor& velocity, const Tensor& gradient,
                   const MomentumStep& step);

struct AdamStep {
  double rate = 0;  ///< corrected for the bias of both moments
  double beta_1 = 0;
  double beta_2 = 0;
  double epsilon = 0;
};

/// m = beta_1 m + (1 - beta_1) gradient; v = beta_2 v + (1 - beta_2) gradient^2;
/// variable -= rate * m / (sqrt(v) + epsilon)
void adam_step(const Tensor& variable, const Tensor& first_moment, const Tensor& second_moment,
               const Tensor& gradient, const AdamStep& step);

}  // namespace cohort
