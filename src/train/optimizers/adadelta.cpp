#include <cohort/train/optimizers/adadelta.h>

#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(Adadelta)

Adadelta::Adadelta(AdadeltaOptions options) : RegisteredOptimizer(options, {"squares", "changes"}) {
  require_positive("Adadelta", "learning_rate", options.learning_rate);
  require_decay("Adadelta", "rho", options.rho);
  require_positive("Adadelta", "epsilon", options.epsilon);
}

void Adadelta::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                      const StepArguments& arguments) const {
  apply_step(
      AdadeltaStep{.rate = arguments.learning_rate, .rho = options().rho, .epsilon = options().epsilon},
      arguments, variable, slots, gradient);
}

}  // namespace cohort
