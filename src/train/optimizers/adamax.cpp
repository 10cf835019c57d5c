#include <cohort/train/optimizers/adamax.h>

#include "adam_step.h"
#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(Adamax)

Adamax::Adamax(AdamaxOptions options) : RegisteredOptimizer(options, {"first_moment", "largest_gradient"}) {
  require_positive("Adamax", "learning_rate", options.learning_rate);
  require_decay("Adamax", "beta_1", options.beta_1);
  require_decay("Adamax", "beta_2", options.beta_2);
  require_positive("Adamax", "epsilon", options.epsilon);
}

void Adamax::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                    const StepArguments& arguments) const {
  apply_step(AdamaxStep{.rate = arguments.learning_rate / bias_of(options().beta_1, arguments),
                        .beta_1 = options().beta_1,
                        .beta_2 = options().beta_2,
                        .epsilon = options().epsilon},
             arguments, variable, slots, gradient);
}

}  // namespace cohort
