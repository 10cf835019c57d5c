#include "statistics.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "bandwidth.h"

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

TEST(Summary, HoldsMedianMinimumAndP99) {
  const Summary summary = summarize(descending(200));
  EXPECT_EQ(summary.median, 100.5);
  EXPECT_EQ(summary.minimum, 1);
  EXPECT_EQ(summary.p99, 198);
}

TEST(Bandwidth, IsInUnitsOf1e9BytesPerSecond) {
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(1'000'000'000, 1e6), 1.0);
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(4096, 1), 4.096);
}

TEST(Bandwidth, FactorOfAllReduceIsTwiceTheShareThatTravels) {
  EXPECT_EQ(all_reduce_bus_factor(1), 0);
  EXPECT_EQ(all_reduce_bus_factor(2), 1);
  EXPECT_EQ(all_reduce_bus_factor(8), 1.75);
}

}  // namespace
}  // namespace cohort::bench
