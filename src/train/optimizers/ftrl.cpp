#include <cohort/train/optimizers/ftrl.h>

#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(Ftrl)

Ftrl::Ftrl(FtrlOptions options)
    : RegisteredOptimizer(options, {"squares", "linear"}, {options.initial_accumulator}) {
  require_positive("Ftrl", "learning_rate", options.learning_rate);
  require_not_negative("Ftrl", "initial_accumulator", options.initial_accumulator);
  require_not_negative("Ftrl", "l1", options.l1);
  require_not_negative("Ftrl", "l2", options.l2);
  require_not_negative("Ftrl", "l2_shrinkage", options.l2_shrinkage);
  require_not_negative("Ftrl", "beta", options.beta);
}

void Ftrl::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                  const StepArguments& arguments) const {
  apply_step(FtrlStep{.rate = arguments.learning_rate,
                      .l1 = options().l1,
                      .l2 = options().l2 + options().beta / (2 * arguments.learning_rate),
                      .shrinkage = options().l2_shrinkage},
             arguments, variable, slots, gradient);
}

}  // namespace cohort
