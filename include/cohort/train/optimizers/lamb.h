// LAMB [You et al. 2020]: Adam whose steps have a length in proportion to the variable, for large batches.
#pragma once

#include <cohort/train/optimizers/optimizer_registry.h>

namespace cohort {

struct LambOptions {
  double learning_rate = 0.001;
  double beta_1 = 0.9;      ///< decay of the first moment, from 0 to below 1
  double beta_2 = 0.999;    ///< decay of the second moment, from 0 to below 1
  double epsilon = 1e-7;    ///< added to the root of the second moment
  double weight_decay = 0;  ///< part of the direction
};

/// m and v as of Adam; r = m / (1 - beta_1^step) / (sqrt(v / (1 - beta_2^step)) + epsilon) + weight_decay
/// variable; variable -= learning_rate * |variable| / |r| * r, where a norm of 0 makes the ratio 1. Two
/// slots: m and v. The norms are those of a whole variable, and in float64; of a variable on a GPU they are
/// summed by the host.
class Lamb final : public RegisteredOptimizer<Lamb, LambOptions> {
 public:
  static constexpr std::string_view kName = "Lamb";

  /// @throws InvalidArgument for an option out of its range.
  explicit Lamb(LambOptions options = {});

  [[nodiscard]] bool is_elementwise() const noexcept override { return false; }

 private:
  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              const StepArguments& arguments) const override;
};

}  // namespace cohort
