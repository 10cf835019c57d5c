#include "statistics.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace cohort::bench {
namespace {

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
