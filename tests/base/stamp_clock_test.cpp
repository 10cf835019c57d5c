#include "base/clocks.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace cohort {
namespace {

using namespace std::chrono_literals;

TEST(StampClock, AgreesWithTheSteadyClock) {
  const StampClock& clock = StampClock::of_this_process();
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t first = clock.now();
  std::this_thread::sleep_for(50ms);
  const std::uint64_t last = clock.now();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const double measured = static_cast<double>(last - first) * clock.seconds_per_tick();
  EXPECT_LE(measured, elapsed.count() * 1.01);
  EXPECT_GE(measured, 0.0495);
}

TEST(StampClock, NeverGoesBackOnOneThread) {
  const StampClock& clock = StampClock::of_this_process();
  std::uint64_t before = clock.now();
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t now = clock.now();
    ASSERT_GE(now, before);
    before = now;
  }
}

}  // namespace
}  // namespace cohort
