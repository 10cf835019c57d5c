#include "clocks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <limits>
#include <thread>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/base/monotonic_clock.h>

namespace cohort {
namespace {

// NOLINTNEXTLINE(*-avoid-non-const-global-variables): the context of a thread
thread_local const VirtualClock* clock_of_this_thread = nullptr;

/// On x86-64 a processor says so: leaf 8000_0007h, EDX bit 8 ("invariant TSC"). The generic timer of aarch64
/// always has a constant rate.
bool has_steady_counter() noexcept {
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1u << 8)) != 0;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

}  // namespace

MonotonicClock::time_point MonotonicClock::now() noexcept {
  const VirtualClock* const clock = clock_of_this_thread;
  return clock != nullptr ? clock->now() : std::chrono::steady_clock::now();
}

VirtualClock::VirtualClock() : now_(std::chrono::steady_clock::now()) {
  COHORT_CHECK(clock_of_this_thread == nullptr);
  clock_of_this_thread = this;
}

VirtualClock::~VirtualClock() { clock_of_this_thread = nullptr; }

Deadline Deadline::after(std::chrono::duration<double> timeout) noexcept {
  // Beyond a century the addition below could overflow; no program waits that long on purpose.
  constexpr std::chrono::duration<double> kCentury = std::chrono::hours(24 * 365 * 100);
  if (!(timeout.count() > 0) || timeout > kCentury) return never();  // also for NaN
  return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout));
}

Deadline Deadline::plus(Clock::duration extra) const noexcept {
  return is_never() ? *this : Deadline(at_ + extra);
}

const StampClock& StampClock::of_this_process() noexcept {
  static const StampClock clock;
  return clock;
}

StampClock::StampClock() noexcept : counter_is_steady_(has_steady_counter()), first_(read_both()) {}

// A thread that loses its core between the two clocks reads them milliseconds apart, so of several readings
// the one that took the fewest ticks counts.
StampClock::Reading StampClock::read_both() const noexcept {
  constexpr int kReadings = 5;
  Reading best{};
  std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < kReadings; ++i) {
    const std::uint64_t before = now();
    const auto time = std::chrono::steady_clock::now();
    const std::uint64_t ticks = now() - before;
    if (ticks >= fewest) continue;
    fewest = ticks;
    best = {.time = time, .stamp = before + ticks / 2};
  }
  return best;
}

double StampClock::seconds_per_tick() const {
  if (!counter_is_steady_)
    return std::chrono::duration<double>(std::chrono::steady_clock::duration(1)).count();
  std::this_thread::sleep_until(first_.time + std::chrono::milliseconds(10));
  const Reading last = read_both();
  const std::chrono::duration<double> elapsed = last.time - first_.time;
  return elapsed.count() / static_cast<double>(last.stamp - first_.stamp);
}

}  // namespace cohort
