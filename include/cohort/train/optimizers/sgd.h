// Stochastic gradient descent.
#pragma once

#include <cohort/train/optimizers/optimizer_registry.h>

namespace cohort {

struct SgdOptions {
  double learning_rate = 0.01;
};

/// variable -= learning_rate * gradient
class Sgd final : public RegisteredOptimizer<Sgd, SgdOptions> {
 public:
  static constexpr std::string_view kName = "Sgd";

  /// @throws InvalidArgument for a learning rate that is not a positive number.
  explicit Sgd(SgdOptions options = {});

 private:
  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              const StepArguments& arguments) const override;
};

}  // namespace cohort
