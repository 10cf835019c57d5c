// A Deadline is a point in time after which a wait gives up. It is passed down by
// value, so that several waits in a row share one limit. `Deadline::never()` waits
// for ever; a time-out of zero in options means the same.
#pragma once

#include <chrono>

#include <cohort/base/monotonic_clock.h>

namespace cohort {

class Deadline {
 public:
  using Clock = MonotonicClock;

  [[nodiscard]] static Deadline never() noexcept { return Deadline(Clock::time_point::max()); }

  /// Zero or negative durations mean `never()`.
  [[nodiscard]] static Deadline after(std::chrono::duration<double> timeout) noexcept;

  [[nodiscard]] bool is_never() const noexcept { return at_ == Clock::time_point::max(); }
  [[nodiscard]] bool expired() const noexcept { return !is_never() && Clock::now() >= at_; }
  [[nodiscard]] Clock::time_point at() const noexcept { return at_; }

  /// This deadline, postponed; `never()` stays `never()`.
  [[nodiscard]] Deadline plus(Clock::duration extra) const noexcept;

 private:
  explicit Deadline(Clock::time_point at) noexcept : at_(at) {}
  Clock::time_point at_;
};

}  // namespace cohort
