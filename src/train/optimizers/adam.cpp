#include <cohort/train/optimizers/adam.h>

#include <cmath>

#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(Adam)

Adam::Adam(AdamOptions options) : RegisteredOptimizer(options, {"first_moment", "second_moment"}) {
  require_positive("Adam", "learning_rate", options.learning_rate);
  require_decay("Adam", "beta_1", options.beta_1);
  require_decay("Adam", "beta_2", options.beta_2);
  require_positive("Adam", "epsilon", options.epsilon);
}

void Adam::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                  const StepArguments& arguments) const {
  // The moments begin at zero, and so are too small at first.
  const auto steps = static_cast<double>(arguments.step);
  const double first_bias = 1 - std::pow(options().beta_1, steps);
  const double second_bias = 1 - std::pow(options().beta_2, steps);
  apply_step({AdamStep{.rate = arguments.learning_rate * std::sqrt(second_bias) / first_bias,
                       .beta_1 = options().beta_1,
                       .beta_2 = options().beta_2,
                       .epsilon = options().epsilon},
              arguments.gradient_factor},
             variable, slots, gradient);
}

}  // namespace cohort
