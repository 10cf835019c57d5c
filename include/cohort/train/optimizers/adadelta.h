// Adadelta [Zeiler 2012]: steps in the unit of the variable, from running means of squares.
#pragma once

#include <cohort/train/optimizers/optimizer_registry.h>

namespace cohort {

struct AdadeltaOptions {
  double learning_rate = 0.001;
  double rho = 0.95;      ///< decay of the means, from 0 to below 1
  double epsilon = 1e-7;  ///< added to both means
};

/// s = rho s + (1 - rho) gradient^2; change = sqrt(c + epsilon) / sqrt(s + epsilon) * gradient;
/// c = rho c + (1 - rho) change^2; variable -= learning_rate * change. Two slots: s and c.
class Adadelta final : public RegisteredOptimizer<Adadelta, AdadeltaOptions> {
 public:
  static constexpr std::string_view kName = "Adadelta";

  /// @throws InvalidArgument for an option out of its range.
  explicit Adadelta(AdadeltaOptions options = {});

 private:
  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              const StepArguments& arguments) const override;
};

}  // namespace cohort
