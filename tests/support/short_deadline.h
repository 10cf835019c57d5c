// Deadlines of calls that a test lets pass.
#pragma once

#include <algorithm>

namespace cohort::testing {

/// A time-out that passes soon, in seconds. More members than cores take turns, so it is longer for many:
/// those that have come need the core once before the deadline passes.
[[nodiscard]] inline double short_timeout(int members) { return std::clamp(0.05 * members, 0.15, 0.5); }

}  // namespace cohort::testing
