#include "tick_clock.h"

#include <chrono>

#include <gtest/gtest.h>

namespace cohort::bench {
namespace {

TEST(TickClock, AgreesWithTheSystemsClock) {
  using SteadyClock = std::chrono::steady_clock;
  const TickClock clock;
  const auto start = SteadyClock::now();
  const std::uint64_t before = clock.now();
  while (SteadyClock::now() - start < std::chrono::milliseconds(20)) continue;
  const std::uint64_t after = clock.now();
  const double us = std::chrono::duration<double, std::micro>(SteadyClock::now() - start).count();
  // The reading lies within the interval that the system saw, which may have been interrupted on the way.
  EXPECT_LE(clock.microseconds(after - before), us * 1.01);
  EXPECT_GE(clock.microseconds(after - before), 20000 * 0.99);
}

TEST(TickClock, TakesOffItsOwnCostButNeverAllOfAnInterval) {
  const TickClock clock;
  EXPECT_GE(clock.cost_ns(), 0);
  EXPECT_NE(clock.description().find("ns for reading it"), std::string::npos);
  // On some processors a call of one rank is shorter than a reading, and still takes time.
  EXPECT_GT(clock.microseconds(0), 0);
  EXPECT_LT(clock.microseconds(0), 0.01);
  EXPECT_NEAR(clock.microseconds(5, 1000000), 1000000 * clock.microseconds(0), 1e-3);
  constexpr std::uint64_t kLong = 1u << 30;
  EXPECT_NEAR((clock.microseconds(kLong) - clock.microseconds(kLong, 1001)) * 1e3, 1000 * clock.cost_ns(),
              0.01 * 1000 * clock.cost_ns() + 1e-3);
}

}  // namespace
}  // namespace cohort::bench
