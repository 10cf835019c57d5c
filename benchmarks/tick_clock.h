// The clock of the timed calls: the processor's time-stamp counter where it runs at a constant
// rate, otherwise std::chrono::steady_clock. Reading it takes a few nanoseconds, which count
// when a call takes sixty, so the cost of a reading is measured once and taken off each
// interval, whichever library was timed. Any thread may read it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace cohort::bench {

class TickClock {
 public:
  /// Takes some 30 ms: finds out the rate and the cost of a reading.
  TickClock();

  [[nodiscard]] std::uint64_t now() const noexcept {
#if defined(__x86_64__)
    if (counter_is_steady_) return __rdtsc();
#endif
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }

  /// The length of `intervals` intervals that are `ticks` long together, without the readings. An interval
  /// can be shorter than a reading; it counts as one tick, since nothing takes no time.
  [[nodiscard]] double microseconds(std::uint64_t ticks, std::uint64_t intervals = 1) const noexcept;

  /// What one reading adds to an interval, in nanoseconds.
  [[nodiscard]] double cost_ns() const noexcept;

  /// In words, for example `time-stamp counter, less 10.0 ns for reading it`.
  [[nodiscard]] std::string description() const;

 private:
  bool counter_is_steady_ = false;
  double us_per_tick_ = 0;
  std::uint64_t ticks_per_reading_ = 0;
};

}  // namespace cohort::bench
