// Gradient descent with momentum [Polyak 1964], optionally looking ahead [Nesterov 1983].
#pragma once

#include <cohort/train/optimizers/optimizer_registry.h>

namespace cohort {

struct MomentumOptions {
  double learning_rate = 0.01;
  double momentum = 0.9;  ///< what is left of the velocity from step to step, from 0 to below 1
  bool nesterov = false;
};

/// velocity = momentum * velocity - learning_rate * gradient; variable += velocity, or, with `nesterov`,
/// momentum * velocity - learning_rate * gradient. One slot: the velocity.
class Momentum final : public RegisteredOptimizer<Momentum, MomentumOptions> {
 public:
  static constexpr std::string_view kName = "Momentum";

  /// @throws InvalidArgument for an option out of its range.
  explicit Momentum(MomentumOptions options = {});

 private:
  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              const StepArguments& arguments) const override;
};

}  // namespace cohort
