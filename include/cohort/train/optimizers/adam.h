// Adam [Kingma and Ba 2015]: steps scaled by running moments of the gradients.
#pragma once

#include <cohort/train/optimizers/optimizer_registry.h>

namespace cohort {

struct AdamOptions {
  double learning_rate = 0.001;
  double beta_1 = 0.9;    ///< decay of the first moment, from 0 to below 1
  double beta_2 = 0.999;  ///< decay of the second moment, from 0 to below 1
  double epsilon = 1e-7;  ///< added to the root of the second moment
  bool amsgrad = false;   ///< divide by the largest second moment so far [Reddi, Kale and Kumar 2018]
};

/// m = beta_1 m + (1 - beta_1) gradient; v = beta_2 v + (1 - beta_2) gradient^2;
/// variable -= learning_rate * sqrt(1 - beta_2^step) / (1 - beta_1^step) * m / (sqrt(v) + epsilon).
/// Two slots, m and v, and with `amsgrad` the largest v.
class Adam final : public RegisteredOptimizer<Adam, AdamOptions> {
 public:
  static constexpr std::string_view kName = "Adam";

  /// @throws InvalidArgument for an option out of its range.
  explicit Adam(AdamOptions options = {});

 private:
  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              const StepArguments& arguments) const override;
};

}  // namespace cohort
