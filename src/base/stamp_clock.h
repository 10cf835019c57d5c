// A clock for time stamps that are taken in every collective: the processor's counter where it runs at a
// constant rate on all cores, otherwise std::chrono::steady_clock. A stamp is a number of ticks. All
// processes of a host read the same counter, so their stamps can be compared; ticks become seconds only when
// somebody asks, by what both clocks have counted meanwhile. Any thread may use it.
#pragma once

#include <chrono>
#include <cstdint>

namespace cohort {

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
  /// ago, so that the rate is right to a ten-thousandth.
  [[nodiscard]] double seconds_per_tick() const;

  StampClock(const StampClock&) = delete;
  StampClock& operator=(const StampClock&) = delete;

 private:
  StampClock() noexcept;
  [[nodiscard]] static std::uint64_t steady_now() noexcept {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }

  bool counter_is_steady_;
  std::chrono::steady_clock::time_point first_time_;
  std::uint64_t first_stamp_;
};

}  // namespace cohort
