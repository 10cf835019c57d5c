#include <cohort/train/optimizers/adagrad.h>

#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(Adagrad)

Adagrad::Adagrad(AdagradOptions options)
    : RegisteredOptimizer(options, {"squares"}, {options.initial_accumulator}) {
  require_positive("Adagrad", "learning_rate", options.learning_rate);
  require_not_negative("Adagrad", "initial_accumulator", options.initial_accumulator);
  require_not_negative("Adagrad", "epsilon", options.epsilon);
}

void Adagrad::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                     const StepArguments& arguments) const {
  apply_step(AdagradStep{.rate = arguments.learning_rate, .epsilon = options().epsilon}, arguments, variable,
             slots, gradient);
}

}  // namespace cohort
