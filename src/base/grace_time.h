// How long those who notice that a deadline has passed wait, beyond it, for the others to say where they are.
// Whoever sets a deadline of a tenth of a second wants to be told in tenths, so the time is shorter where the
// deadline is.
#pragma once

#include <algorithm>
#include <chrono>

namespace cohort {

/// What a time of `whole` comes to in a call with that time-out, where zero means none: all of it from a
/// quarter of a second on; below, it shrinks with the time-out, but to two fifths at most, which for half a
/// second are 0.2 s: a process that shares its core may not run for a tenth.
[[nodiscard]] inline std::chrono::milliseconds grace_time(std::chrono::milliseconds whole,
                                                          std::chrono::duration<double> timeout) {
  constexpr std::chrono::duration<double> kWholeFrom{0.25};
  constexpr double kLeast = 0.4;
  if (timeout.count() <= 0) return whole;
  const double part = std::clamp(timeout / kWholeFrom, kLeast, 1.0);
  return std::chrono::duration_cast<std::chrono::milliseconds>(part * whole);
}

}  // namespace cohort
