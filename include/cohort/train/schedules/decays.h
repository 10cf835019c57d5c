// Learning rates that fall, or rise and fall, with the steps made. Each function makes a
// LearningRateSchedule:
//
//     optimizer.set_learning_rate(cosine_decay({.learning_rate = 0.1, .steps = 10'000}));
//     optimizer.set_learning_rate(warm_up(exponential_decay({.learning_rate = 0.1, .steps = 500, .rate =
//     0.9}),
//                                         {.steps = 1000}));
//
// `step` is how many steps were made before; rates are computed in float64. Every function throws
// InvalidArgument for an option out of its range, naming it.
#pragma once

#include <cstdint>
#include <vector>

#include <cohort/train/schedules/learning_rate_schedule.h>

namespace cohort {

/// values[i] up to and including step boundaries[i], and the last value after all of them. There is one value
/// more than boundaries, and these rise.
[[nodiscard]] LearningRateSchedule piecewise_constant(std::vector<std::int64_t> boundaries,
                                                      std::vector<double> values);

struct DecayOptions {
  double learning_rate = 0.1;  ///< that of step 0
  double steps = 1000;         ///< in how many steps the rate falls once by `rate`
  double rate = 0.5;
  bool staircase = false;  ///< only at whole multiples of `steps`
};

/// learning_rate * rate^(step / steps)
[[nodiscard]] LearningRateSchedule exponential_decay(const DecayOptions& options);

/// learning_rate * exp(-rate * step / steps)
[[nodiscard]] LearningRateSchedule natural_exponential_decay(const DecayOptions& options);

/// learning_rate / (1 + rate * step / steps)
[[nodiscard]] LearningRateSchedule inverse_time_decay(const DecayOptions& options);

struct PolynomialDecayOptions {
  double learning_rate = 0.1;
  double steps = 1000;
  double end_learning_rate = 0.0001;
  double power = 1;
  bool cycle = false;  ///< after `steps`, starts again from a lower rate: `steps` becomes its next multiple
};

/// (learning_rate - end_learning_rate) (1 - step / steps)^power + end_learning_rate, and from `steps` on
/// end_learning_rate.
[[nodiscard]] LearningRateSchedule polynomial_decay(const PolynomialDecayOptions& options);

struct CosineDecayOptions {
  double learning_rate = 0.1;
  double steps = 1000;
  double alpha = 0;  ///< what is left of the rate at the end, as a part of it
};

/// learning_rate ((1 - alpha) (1 + cos(pi step / steps)) / 2 + alpha), and from `steps` on learning_rate *
/// alpha [Loshchilov and Hutter 2017, SGDR].
[[nodiscard]] LearningRateSchedule cosine_decay(const CosineDecayOptions& options);

struct CosineRestartsOptions {
  double learning_rate = 0.1;
  double first_steps = 1000;        ///< of the first period
  double period_factor = 2;         ///< each period is so much longer than the one before; at least 1
  double learning_rate_factor = 1;  ///< and begins at so much of its rate
  double alpha = 0;                 ///< as of cosine_decay
};

/// A cosine_decay after the other [Loshchilov and Hutter 2017, SGDR, section 3].
[[nodiscard]] LearningRateSchedule cosine_restarts(const CosineRestartsOptions& options);

struct OneCycleOptions {
  double highest_learning_rate = 0.1;
  std::int64_t steps = 1000;  ///< of the whole training; the last rate stays after that
  double rising = 0.3;        ///< part of the steps in which the rate rises
  double first_divisor = 25;  ///< the first rate is the highest by this
  double last_divisor = 1e4;  ///< and the last rate is the first one by this
};

/// From the first rate to the highest, reached at step `rising * steps - 1`, and down to the last one at step
/// `steps - 1`, both along half a cosine [Smith and Topin 2018, super-convergence].
[[nodiscard]] LearningRateSchedule one_cycle(const OneCycleOptions& options);

struct WarmUpOptions {
  std::int64_t steps = 1000;
  double first_learning_rate = 0;
};

/// In `steps` steps along a line from the first rate to that with which `then` begins, and then `then`, whose
/// step 0 is the step after them.
[[nodiscard]] LearningRateSchedule warm_up(LearningRateSchedule then, const WarmUpOptions& options);

}  // namespace cohort
