#include <cohort/train/optimizers/momentum.h>

#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(Momentum)

Momentum::Momentum(MomentumOptions options) : RegisteredOptimizer(options, {"velocity"}) {
  require_positive("Momentum", "learning_rate", options.learning_rate);
  require_decay("Momentum", "momentum", options.momentum);
}

void Momentum::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                      const StepArguments& arguments) const {
  apply_step(
      MomentumStep{
          .rate = arguments.learning_rate, .momentum = options().momentum, .nesterov = options().nesterov},
      arguments, variable, slots, gradient);
}

}  // namespace cohort
