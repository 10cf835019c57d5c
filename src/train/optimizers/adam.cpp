#include <cohort/train/optimizers/adam.h>

#include "adam_step.h"
#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(Adam)
namespace {

std::vector<std::string> slot_names_of(const AdamOptions& options) {
  if (options.amsgrad) return {"first_moment", "second_moment", "largest_second_moment"};
  return {"first_moment", "second_moment"};
}

}  // namespace

Adam::Adam(AdamOptions options) : RegisteredOptimizer(options, slot_names_of(options)) {
  require_positive("Adam", "learning_rate", options.learning_rate);
  require_decay("Adam", "beta_1", options.beta_1);
  require_decay("Adam", "beta_2", options.beta_2);
  require_positive("Adam", "epsilon", options.epsilon);
}

void Adam::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                  const StepArguments& arguments) const {
  const AdamStep rule = adam_step(options(), arguments);
  if (options().amsgrad)
    apply_step(amsgrad_step(rule), arguments, variable, slots, gradient);
  else
    apply_step(rule, arguments, variable, slots, gradient);
}

}  // namespace cohort
