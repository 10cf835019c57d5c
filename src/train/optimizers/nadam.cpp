#include <cohort/train/optimizers/nadam.h>

#include <cmath>

#include "adam_step.h"
#include "apply_step.h"
#include "require_option.h"

namespace cohort {

COHORT_REGISTER_OPTIMIZER(Nadam)
namespace {

double momentum_at(double beta, std::int64_t step) {
  return beta * (1 - std::pow(0.96, static_cast<double>(step)) / 2);
}

/// Of all steps so far. Below the smallest double that changes 1, further factors do not matter.
double product_of_momenta(double beta, std::int64_t steps) {
  double product = 1;
  double power = 1;
  for (std::int64_t step = 1; step <= steps && product > 1e-17; ++step) {
    power *= 0.96;
    product *= beta * (1 - power / 2);
  }
  return product;
}

}  // namespace

Nadam::Nadam(NadamOptions options) : RegisteredOptimizer(options, {"first_moment", "second_moment"}) {
  require_positive("Nadam", "learning_rate", options.learning_rate);
  require_decay("Nadam", "beta_1", options.beta_1);
  require_decay("Nadam", "beta_2", options.beta_2);
  require_positive("Nadam", "epsilon", options.epsilon);
}

void Nadam::update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
                   const StepArguments& arguments) const {
  const double beta = options().beta_1;
  const double all = product_of_momenta(beta, arguments.step);
  const double next = momentum_at(beta, arguments.step + 1);
  const double rate = arguments.learning_rate;
  apply_step(NadamStep{.moment_rate = rate * next / (1 - all * next),
                       .gradient_rate = rate * (1 - momentum_at(beta, arguments.step)) / (1 - all),
                       .beta_1 = beta,
                       .beta_2 = options().beta_2,
                       .second_bias = bias_of(options().beta_2, arguments),
                       .epsilon = options().epsilon},
             arguments, variable, slots, gradient);
}

}  // namespace cohort
