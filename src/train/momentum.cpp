#include <cohort/train/momentum.h>

#include "apply_step.h"
#include "require_option.h"

namespace cohort {

Momentum::Momentum(MomentumOptions options) : Optimizer({"velocity"}), options_(options) {
  require_positive("Momentum", "learning_rate", options.learning_rate);
  require_decay("Momentum", "momentum", options.momentum);
}

void Momentum::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                      std::int64_t /*step*/) const {
  apply_step(
      {MomentumStep{
          .rate = options_.learning_rate, .momentum = options_.momentum, .nesterov = options_.nesterov}},
      variable, slots, gradient);
}

}  // namespace cohort
