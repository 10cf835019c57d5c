#include <cohort/train/optimizers/sgd.h>

#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(Sgd)

Sgd::Sgd(SgdOptions options) : RegisteredOptimizer(options) {
  require_positive("Sgd", "learning_rate", options.learning_rate);
}

void Sgd::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                 const StepArguments& arguments) const {
  apply_step(SgdStep{.rate = arguments.learning_rate}, arguments, variable, slots, gradient);
}

}  // namespace cohort
