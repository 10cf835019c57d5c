#include <chrono>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "timing.h"

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

/// 1 to `count`, largest first.
std::vector<double> descending(int count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  std::iota(values.rbegin(), values.rend(), 1.0);
  return values;
}

TEST(Median, IsTheMiddleValueInWhateverOrder) {
  EXPECT_EQ(median(std::vector<double>{7}), 7);
  EXPECT_EQ(median(std::vector<double>{9, 1, 5}), 5);
  EXPECT_EQ(median(std::vector<double>{9, 1, 5, 6}), 5.5);
}

TEST(Median, IgnoresAFewInterruptedIterations) {
  EXPECT_EQ(median(std::vector<double>{1, 1, 1, 1, 1000}), 1);
}

TEST(Percentile, IsAValueThatOccurred) {
  EXPECT_EQ(percentile(descending(1000), 99), 990);
  EXPECT_EQ(percentile(descending(100), 99), 99);
  EXPECT_EQ(percentile(descending(101), 99), 100);
}

TEST(Percentile, OfFewValuesIsTheLargest) {
  EXPECT_EQ(percentile(descending(99), 99), 99);
  EXPECT_EQ(percentile(descending(1), 99), 1);
}

TEST(Bandwidth, IsInUnitsOf1e9BytesPerSecond) {
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(1'000'000'000, 1e6), 1.0);
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(4096, 1), 4.096);
}

TEST(Bandwidth, OfNothingIsNothing) { EXPECT_EQ(algorithm_bandwidth(0, 1), 0); }

TEST(Bandwidth, FactorsAreTheSharesThatTravel) {
  EXPECT_EQ(bus_factor_twice_across(2), 1);
  EXPECT_EQ(bus_factor_twice_across(8), 1.75);
  EXPECT_EQ(bus_factor_all_but_own(2), 0.5);
  EXPECT_EQ(bus_factor_all_but_own(8), 0.875);
  EXPECT_EQ(bus_factor_once(8), 1);
  for (const auto factor :
       {bus_factor_twice_across, bus_factor_all_but_own, bus_factor_once, bus_factor_none}) {
    EXPECT_EQ(factor(1), 0) << "nothing travels from a member to itself";
  }
}

}  // namespace
}  // namespace cohort::bench
