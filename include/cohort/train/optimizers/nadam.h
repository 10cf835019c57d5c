// Nadam [Dozat 2016]: Adam that looks ahead, with a momentum that grows to beta_1.
#pragma once

#include <cohort/train/optimizers/optimizer_registry.h>

namespace cohort {

struct NadamOptions {
  double learning_rate = 0.001;
  double beta_1 = 0.9;    ///< decay of the first moment, from 0 to below 1
  double beta_2 = 0.999;  ///< decay of the second moment, from 0 to below 1
  double epsilon = 1e-7;  ///< added to the root of the second moment
};

/// m and v as of Adam; b_t = beta_1 (1 - 0.96^t / 2), and B the product of b_1 to b_step;
/// variable -= learning_rate / (sqrt(v / (1 - beta_2^step)) + epsilon) *
///             (b_{step+1} m / (1 - B b_{step+1}) + (1 - b_step) gradient / (1 - B)). Two slots: m and v.
class Nadam final : public RegisteredOptimizer<Nadam, NadamOptions> {
 public:
  static constexpr std::string_view kName = "Nadam";

  /// @throws InvalidArgument for an option out of its range.
  explicit Nadam(NadamOptions options = {});

 private:
  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              const StepArguments& arguments) const override;
};

}  // namespace cohort
