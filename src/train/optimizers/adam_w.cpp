#include <cohort/train/optimizers/adam_w.h>

#include "adam_step.h"
#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(AdamW)

AdamW::AdamW(AdamWOptions options) : RegisteredOptimizer(options, {"first_moment", "second_moment"}) {
  require_positive("AdamW", "learning_rate", options.learning_rate);
  require_decay("AdamW", "beta_1", options.beta_1);
  require_decay("AdamW", "beta_2", options.beta_2);
  require_positive("AdamW", "epsilon", options.epsilon);
  require_not_negative("AdamW", "weight_decay", options.weight_decay);
}

void AdamW::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                   const StepArguments& arguments) const {
  StepArguments decaying = arguments;
  decaying.weight_decay += arguments.learning_rate * options().weight_decay;
  apply_step(adam_step(options(), arguments), decaying, variable, slots, gradient);
}

}  // namespace cohort
