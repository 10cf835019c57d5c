// The time of day, as logs have it.
#pragma once

#include <chrono>

namespace cohort {

/// Seconds since 1970.
[[nodiscard]] inline double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace cohort
