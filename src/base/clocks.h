// Clocks and times beside std::chrono's: time stamps for every collective, the time of day for logs, and how
// long to wait beyond a deadline. The clock that deadlines go by is <cohort/base/monotonic_clock.h>.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace cohort {

/// A clock for time stamps that are taken in every collective: the processor's counter where it runs at a
/// constant rate on all cores, otherwise std::chrono::steady_clock. A stamp is a number of ticks. All
/// processes of a host read the same counter, so their stamps can be compared; ticks become seconds only when
/// somebody asks, by what both clocks have counted meanwhile. Any thread may use it.
class StampClock {
 public:
  /// The clock of this process; the first call is where its rate begins to be measured.
  [[nodiscard]] static const StampClock& of_this_process() noexcept;

  [[nodiscard]] std::uint64_t now() const noexcept {
    if (!counter_is_steady_) return steady_now();
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    std::uint64_t ticks = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return steady_now();
#endif
  }

  /// Whether stamps come from the processor's counter, and not from steady_clock.
  [[nodiscard]] bool reads_counter() const noexcept { return counter_is_steady_; }

  /// How long a tick lasts, measured since the first call of `of_this_process`; sleeps until that is 10 ms
  /// ago, so that the rate is right to a ten-thousandth, also on a machine whose cores are all busy.
  [[nodiscard]] double seconds_per_tick() const;

  StampClock(const StampClock&) = delete;
  StampClock& operator=(const StampClock&) = delete;

 private:
  /// What both clocks show at one moment.
  struct Reading {
    std::chrono::steady_clock::time_point time;
    std::uint64_t stamp;
  };

  StampClock() noexcept;
  [[nodiscard]] Reading read_both() const noexcept;
  [[nodiscard]] static std::uint64_t steady_now() noexcept {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }

  bool counter_is_steady_;
  Reading first_;
};

/// How long those who notice that a deadline has passed wait, beyond it, for the others to say where they
/// are. Whoever sets a deadline of a tenth of a second wants to be told in tenths, so the time is shorter
/// where the deadline is.
///
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

/// The time of day, as logs have it: seconds since 1970.
[[nodiscard]] inline double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace cohort
