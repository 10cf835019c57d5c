// The constants of a step of Adam, for the optimizers that make one.
#pragma once

#include <cmath>

#include "apply_step.h"

namespace cohort {

/// The moments begin at zero, and so are too small at first.
[[nodiscard]] inline double bias_of(double decay, const StepArguments& arguments) {
  return 1 - std::pow(decay, static_cast<double>(arguments.step));
}

/// `options` are those of Adam or AdamW.
template <class Options>
[[nodiscard]] AdamStep adam_step(const Options& options, const StepArguments& arguments) {
  const double correction =
      std::sqrt(bias_of(options.beta_2, arguments)) / bias_of(options.beta_1, arguments);
  return {.rate = arguments.learning_rate * correction,
          .beta_1 = options.beta_1,
          .beta_2 = options.beta_2,
          .epsilon = options.epsilon};
}

[[nodiscard]] inline AmsGradStep amsgrad_step(const AdamStep& step) {
  return {.rate = step.rate, .beta_1 = step.beta_1, .beta_2 = step.beta_2, .epsilon = step.epsilon};
}

}  // namespace cohort
