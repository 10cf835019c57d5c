// The clock by which waits are measured. It is the system's steady clock, but in a thread that simulates a
// cluster: there it is a VirtualClock, which moves only when it is told to.
#pragma once

#include <chrono>

namespace cohort {

/// Meets the requirements of a clock of `<chrono>`.
struct MonotonicClock {
  // NOLINTBEGIN(readability-identifier-naming): the names that <chrono> prescribes
  using duration = std::chrono::steady_clock::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr bool is_steady = true;
  // NOLINTEND(readability-identifier-naming)

  [[nodiscard]] static time_point now() noexcept;
};

/// While it lives, the MonotonicClock of the thread that made it. One per thread.
class VirtualClock {
 public:
  VirtualClock();
  ~VirtualClock();
  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

  [[nodiscard]] MonotonicClock::time_point now() const noexcept { return now_; }
  void set(MonotonicClock::time_point now) noexcept { now_ = now; }

 private:
  MonotonicClock::time_point now_;
};

}  // namespace cohort
