#include "base/stamp_clock.h"

#include <thread>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace cohort {
namespace {

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

const StampClock& StampClock::of_this_process() noexcept {
  static const StampClock clock;
  return clock;
}

StampClock::StampClock() noexcept
    : counter_is_steady_(has_steady_counter()),
      first_time_(std::chrono::steady_clock::now()),
      first_stamp_(now()) {}

double StampClock::seconds_per_tick() const {
  if (!counter_is_steady_)
    return std::chrono::duration<double>(std::chrono::steady_clock::duration(1)).count();
  std::this_thread::sleep_until(first_time_ + std::chrono::milliseconds(10));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - first_time_;
  return elapsed.count() / static_cast<double>(now() - first_stamp_);
}

}  // namespace cohort
