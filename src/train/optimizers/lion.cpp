#include <cohort/train/optimizers/lion.h>

#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(Lion)

Lion::Lion(LionOptions options) : RegisteredOptimizer(options, {"moment"}) {
  require_positive("Lion", "learning_rate", options.learning_rate);
  require_decay("Lion", "beta_1", options.beta_1);
  require_decay("Lion", "beta_2", options.beta_2);
}

void Lion::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                  const StepArguments& arguments) const {
  apply_step(
      LionStep{.rate = arguments.learning_rate, .beta_1 = options().beta_1, .beta_2 = options().beta_2},
      arguments, variable, slots, gradient);
}

}  // namespace cohort
