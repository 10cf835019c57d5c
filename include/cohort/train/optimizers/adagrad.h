// Adagrad [Duchi, Hazan and Singer 2011]: steps scaled by the sum of all squares so far.
#pragma once

#include <cohort/train/optimizers/optimizer_registry.h>

namespace cohort {

struct AdagradOptions {
  double learning_rate = 0.001;
  double initial_accumulator = 0.1;  ///< what the sum begins with
  double epsilon = 1e-7;             ///< added to the sum
};

/// s += gradient^2; variable -= learning_rate * gradient / sqrt(s + epsilon). One slot: s.
class Adagrad final : public RegisteredOptimizer<Adagrad, AdagradOptions> {
 public:
  static constexpr std::string_view kName = "Adagrad";

  /// @throws InvalidArgument for an option out of its range.
  explicit Adagrad(AdagradOptions options = {});

 private:
  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              const StepArguments& arguments) const override;
};

}  // namespace cohort
