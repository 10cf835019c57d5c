// Adamax [Kingma and Ba 2015, section 7]: Adam by the largest of the gradients.
#pragma once

#include <cohort/train/optimizers/optimizer_registry.h>

namespace cohort {

struct AdamaxOptions {
  double learning_rate = 0.001;
  double beta_1 = 0.9;    ///< decay of the first moment, from 0 to below 1
  double beta_2 = 0.999;  ///< decay of the largest gradient, from 0 to below 1
  double epsilon = 1e-7;  ///< added to the largest gradient
};

/// m = beta_1 m + (1 - beta_1) gradient; u = max(beta_2 u, |gradient|);
/// variable -= learning_rate / (1 - beta_1^step) * m / (u + epsilon). Two slots: m and u.
class Adamax final : public RegisteredOptimizer<Adamax, AdamaxOptions> {
 public:
  static constexpr std::string_view kName = "Adamax";

  /// @throws InvalidArgument for an option out of its range.
  explicit Adamax(AdamaxOptions options = {});

 private:
  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              const StepArguments& arguments) const override;
};

}  // namespace cohort
