// AdamW [Loshchilov and Hutter 2019]: Adam with weight decay that is no part of the gradient.
#pragma once

#include <cohort/train/optimizers/optimizer_registry.h>

namespace cohort {

struct AdamWOptions {
  double learning_rate = 0.001;
  double beta_1 = 0.9;          ///< decay of the first moment, from 0 to below 1
  double beta_2 = 0.999;        ///< decay of the second moment, from 0 to below 1
  double epsilon = 1e-7;        ///< added to the root of the second moment
  double weight_decay = 0.004;  ///< times the learning rate, what a step takes from a variable
};

/// variable -= learning_rate * weight_decay * variable, and then a step of Adam. Two slots: m and v.
class AdamW final : public RegisteredOptimizer<AdamW, AdamWOptions> {
 public:
  static constexpr std::string_view kName = "AdamW";

  /// @throws InvalidArgument for an option out of its range.
  explicit AdamW(AdamWOptions options = {});

 private:
  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              const StepArguments& arguments) const override;
};

}  // namespace cohort
