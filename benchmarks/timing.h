// The clock of the timed calls, and the figures that are reported of a series of times: median, percentile
// and bandwidth. The median and the percentiles are order statistics, so a few interrupted iterations do not
// move them.
//
// Bandwidths are in GB/s = 1e9 bytes per second. The algorithm bandwidth is the size of the largest buffer of
// one member over the time. The bus bandwidth scales it by a factor per collective, so that its peak does not
// depend on the number of members and compares with the speed of one member's link (nccl-tests,
// doc/PERFORMANCE.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace cohort::bench {

/// The processor's time-stamp counter where it runs at a constant rate, otherwise std::chrono::steady_clock.
/// Reading it takes a few nanoseconds, which count when a call takes sixty, so the cost of a reading is
/// measured once and taken off each interval, whichever library was timed. Any thread may read it.
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

/// The middle value; the mean of the two middle ones of an even number. `values` is not empty.
[[nodiscard]] double median(std::span<const double> values);

/// The smallest value that is not below `percent` per cent of all (nearest rank), so it is one
/// that occurred; with fewer than 100 values the 99th percentile is the largest.
[[nodiscard]] double percentile(std::span<const double> values, double percent);

/// Zero when nothing was moved.
[[nodiscard]] constexpr double algorithm_bandwidth(std::size_t bytes, double microseconds) {
  return bytes == 0 ? 0 : static_cast<double>(bytes) / (microseconds * 1e3);
}

/// All-reduce: each element crosses a link 2(n-1) times, over the n members' links.
[[nodiscard]] constexpr double bus_factor_twice_across(int members) { return 2.0 * (members - 1) / members; }

/// Where every member keeps its own block: the n-1 others cross each member's link, or the root's.
[[nodiscard]] constexpr double bus_factor_all_but_own(int members) {
  return static_cast<double>(members - 1) / members;
}

/// Broadcast and reduce: the whole buffer crosses the root's link once, when there is another member.
[[nodiscard]] constexpr double bus_factor_once(int members) { return members > 1 ? 1 : 0; }

/// Barrier: there is only latency.
[[nodiscard]] constexpr double bus_factor_none(int /*members*/) { return 0; }

}  // namespace cohort::bench
