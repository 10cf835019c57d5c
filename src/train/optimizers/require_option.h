// Checks of the options of optimizers and schedules.
#pragma once

#include <cmath>
#include <string_view>

#include <cohort/base/error.h>

namespace cohort {

inline void require_positive(std::string_view of, std::string_view option, double value) {
  if (std::isfinite(value) && value > 0) return;
  throw InvalidArgument("{}: {} is {}; it must be a positive number", of, option, value);
}

inline void require_not_negative(std::string_view of, std::string_view option, double value) {
  if (std::isfinite(value) && value >= 0) return;
  throw InvalidArgument("{}: {} is {}; it must be a finite number, and not negative", of, option, value);
}

[[nodiscard]] inline double checked_rate(double learning_rate) {
  if (std::isfinite(learning_rate) && learning_rate >= 0) return learning_rate;
  throw InvalidArgument("the learning rate is {}; it must be a finite number, and not negative",
                        learning_rate);
}

/// A factor that is applied in every step.
inline void require_decay(std::string_view of, std::string_view option, double value) {
  if (value >= 0 && value < 1) return;
  throw InvalidArgument("{}: {} is {}; it must be from 0 to below 1", of, option, value);
}

}  // namespace cohort
