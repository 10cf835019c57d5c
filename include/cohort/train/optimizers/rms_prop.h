// RMSprop [Tieleman and Hinton 2012; centred: Graves 2013]: steps scaled by a running mean of squares.
#pragma once

#include <cohort/train/optimizers/optimizer_registry.h>

namespace cohort {

struct RmsPropOptions {
  double learning_rate = 0.001;
  double rho = 0.9;           ///< decay of the means, from 0 to below 1
  double momentum = 0;        ///< from 0 to below 1
  double epsilon = 1e-7;      ///< added to the mean of squares
  bool centered = false;      ///< subtract the square of the running mean
  double initial_square = 0;  ///< what the mean of squares begins with
};

/// s = rho s + (1 - rho) gradient^2; with `centered`, a = rho a + (1 - rho) gradient and s - a^2 stands for
/// s; change = learning_rate * gradient / sqrt(s + epsilon); variable -= change, or, with momentum, velocity
/// = momentum * velocity + change; variable -= velocity. Slots: s, with `centered` a, and with momentum the
/// velocity.
class RmsProp final : public RegisteredOptimizer<RmsProp, RmsPropOptions> {
 public:
  static constexpr std::string_view kName = "RmsProp";

  /// @throws InvalidArgument for an option out of its range.
  explicit RmsProp(RmsPropOptions options = {});

 private:
  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              const StepArguments& arguments) const override;
};

}  // namespace cohort
