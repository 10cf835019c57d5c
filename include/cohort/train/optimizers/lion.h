// Lion [Chen et al. 2023]: steps of one size along the sign of a momentum.
#pragma once

#include <cohort/train/optimizers/optimizer_registry.h>

namespace cohort {

struct LionOptions {
  double learning_rate = 0.001;
  double beta_1 = 0.9;   ///< of the moment in the direction, from 0 to below 1
  double beta_2 = 0.99;  ///< decay of the moment, from 0 to below 1
};

/// variable -= learning_rate * sign(beta_1 m + (1 - beta_1) gradient); m = beta_2 m + (1 - beta_2) gradient.
/// One slot: m.
class Lion final : public RegisteredOptimizer<Lion, LionOptions> {
 public:
  static constexpr std::string_view kName = "Lion";

  /// @throws InvalidArgument for an option out of its range.
  explicit Lion(LionOptions options = {});

 private:
  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              const StepArguments& arguments) const override;
};

}  // namespace cohort
