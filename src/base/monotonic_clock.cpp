#include <cohort/base/monotonic_clock.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

// NOLINTNEXTLINE(*-avoid-non-const-global-variables): the context of a thread
thread_local const VirtualClock* clock_of_this_thread = nullptr;

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

}  // namespace cohort
