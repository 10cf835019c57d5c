#include "timing.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace cohort::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kCalibration{30};

/// Constant rate in all states of the processor: leaf 8000_0007h, EDX bit 8 ("invariant TSC").
bool has_steady_counter() {
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1u << 8)) != 0;
#else
  return false;
#endif
}

}  // namespace

TickClock::TickClock() : counter_is_steady_(has_steady_counter()) {
  const SteadyClock::time_point start = SteadyClock::now();
  const std::uint64_t first = now();
  SteadyClock::time_point end = start;
  while (end - start < kCalibration) end = SteadyClock::now();
  const std::uint64_t last = now();
  us_per_tick_ =
      std::chrono::duration<double, std::micro>(end - start).count() / static_cast<double>(last - first);

  // The median: a reading may be interrupted, but seldom.
  std::array<std::uint64_t, 1001> readings{};
  for (std::uint64_t& reading : readings) {
    const std::uint64_t before = now();
    reading = now() - before;
  }
  std::nth_element(readings.begin(), readings.begin() + readings.size() / 2, readings.end());
  ticks_per_reading_ = readings[readings.size() / 2];
}

double TickClock::microseconds(std::uint64_t ticks, std::uint64_t intervals) const noexcept {
  const std::uint64_t readings = ticks_per_reading_ * intervals;
  return static_cast<double>(std::max(ticks, readings + intervals) - readings) * us_per_tick_;
}

double TickClock::cost_ns() const noexcept {
  return static_cast<double>(ticks_per_reading_) * us_per_tick_ * 1e3;
}

std::string TickClock::description() const {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "%s, less %.1f ns for reading it",
                counter_is_steady_ ? "time-stamp counter" : "steady clock", cost_ns());
  return text.data();
}

namespace {

std::vector<double> sorted(std::span<const double> values) {
  assert(!values.empty());
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

}  // namespace

double median(std::span<const double> values) {
  const std::vector<double> ascending = sorted(values);
  const std::size_t middle = ascending.size() / 2;
  return ascending.size() % 2 == 1 ? ascending[middle] : (ascending[middle - 1] + ascending[middle]) / 2;
}

double percentile(std::span<const double> values, double percent) {
  const std::vector<double> ascending = sorted(values);
  const auto rank =
      static_cast<std::size_t>(std::ceil(percent * static_cast<double>(ascending.size()) / 100));
  return ascending[std::clamp<std::size_t>(rank, 1, ascending.size()) - 1];
}

}  // namespace cohort::bench
