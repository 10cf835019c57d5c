// What an optimizer's `update` is told: all that is the same for the variables of a step, and the factor of
// one variable's gradient.
#pragma once

#include <cstdint>
#include <limits>

namespace cohort {

struct StepArguments {
  std::int64_t step = 1;  ///< its number, from 1
  double learning_rate = 0;
  double gradient_factor = 1;  ///< what the gradient is to be multiplied with first
  double largest_gradient =
      std::numeric_limits<double>::infinity();  ///< then its elements are clipped to this
  double weight_decay = 0;  ///< the part of the variable that is taken away before its update

  // Slots after those of the optimizer itself.
  bool has_master = false;     ///< the variable in float32, which is what is updated; all slots are float32
  bool has_average = false;    ///< the average of the variable's values
  double average_kept = 0;     ///< what the average keeps of itself; the rest is the new value
  bool takes_average = false;  ///< the variable becomes the average
};

}  // namespace cohort
