// FTRL-Proximal [McMahan et al. 2013]: follows the regularized leader, with few weights that are not 0.
#pragma once

#include <cohort/train/optimizers/optimizer_registry.h>

namespace cohort {

struct FtrlOptions {
  double learning_rate = 0.001;
  double initial_accumulator = 0.1;  ///< what the sum of squares begins with
  double l1 = 0;                     ///< weight of the absolute values
  double l2 = 0;                     ///< weight of the squares
  double l2_shrinkage = 0;           ///< weight of squares that only enlarge the gradient
  double beta = 0;                   ///< added to the root of the sum
};

/// s' = s + gradient^2; z += gradient + 2 l2_shrinkage variable - (sqrt(s') - sqrt(s)) / learning_rate *
/// variable; variable = (clamp(z, -l1, l1) - z) / ((beta + sqrt(s')) / learning_rate + 2 l2); s = s'. Two
/// slots: s and z.
class Ftrl final : public RegisteredOptimizer<Ftrl, FtrlOptions> {
 public:
  static constexpr std::string_view kName = "Ftrl";

  /// @throws InvalidArgument for an option out of its range.
  explicit Ftrl(FtrlOptions options = {});

 private:
  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              const StepArguments& arguments) const override;
};

}  // namespace cohort
