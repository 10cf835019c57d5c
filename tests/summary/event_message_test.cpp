// Events byte by byte, and histograms by hand.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <cohort/base/error.h>

#include "event_file.h"
#include "summary/event_message.h"

namespace cohort::testing {
namespace {

TEST(EventMessage, VersionAndScalarAreThoseOfTheFormat) {
  EXPECT_EQ(hex_of(version_event(1.5)),
            "09000000000000f83f1a0d627261696e2e4576656e743a3252080a06636f686f7274");
  const SummaryValue value{
      .tag = "loss", .step = 3, .wall_time = 1.5, .metadata = {.plugin = "scalars"}, .value = 0.5};
  EXPECT_EQ(hex_of(value_event(value)),
            "09000000000000f83f10032a210a1f0a046c6f7373420a0801120022040000003f4a0b0a090a077363616c617273");
}

TEST(EventMessage, ANegativeStepHasTenBytes) {
  EXPECT_EQ(hex_of(restart_event(-1, 0)), "09000000000000000010ffffffffffffffffff013a020801");
}

std::vector<double> rows(const Tensor& histogram) {
  const auto all = histogram.span<double>();
  return {all.begin(), all.end()};
}

TEST(Histogram, CountsTheValuesOfEachInterval) {
  EXPECT_THAT(rows(histogram_of(Tensor::from({0.0F, 1.0F, 1.5F, 2.0F, 4.0F}), 2)),
              ::testing::ElementsAre(0, 2, 3, 2, 4, 2));
}

TEST(Histogram, OneValueOnlyIsInTheLastInterval) {
  EXPECT_THAT(rows(histogram_of(Tensor::from({3, 3, 3}), 2)), ::testing::ElementsAre(3, 3, 0, 3, 3, 3));
}

TEST(Histogram, LeavesOutWhatIsNotFinite) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(rows(histogram_of(Tensor::from({none, 1.0, -infinity, 2.0}), 1)),
              ::testing::ElementsAre(1, 2, 2));
  EXPECT_THAT(rows(histogram_of(Tensor::from({none}), 1)), ::testing::ElementsAre(0, 0, 0));
}

TEST(Histogram, TakesTheWholeRangeOfFloat64) {
  const double largest = std::numeric_limits<double>::max();
  const auto counts = rows(histogram_of(Tensor::from({-largest, largest, 0.0}), 2));
  EXPECT_EQ(counts[2], 1);
  EXPECT_EQ(counts[5], 2);
}

/// As the formula says, value by value.
std::vector<double> counted_one_by_one(const Tensor& values, double begin, double end, int buckets) {
  std::vector<double> counts(static_cast<std::size_t>(buckets));
  const double width = (end - begin) / buckets;
  for (const double value : values.cast(DType::kFloat64).span<double>())
    if (std::isfinite(value))
      ++counts[std::min(static_cast<std::size_t>((value - begin) / width), counts.size() - 1)];
  return counts;
}

TEST(Histogram, CountsManyValuesAsOneByOne) {
  for (const std::int64_t count : {7, 8, 9, 1023, 1024, 1025, 5003}) {
    const Tensor values = Tensor::uninitialized({count}, DType::kFloat32);
    for (std::size_t i = 0; i < values.elements(); ++i)
      values.span<float>()[i] = i % 11 == 3   ? std::numeric_limits<float>::quiet_NaN()
                                : i % 13 == 4 ? std::numeric_limits<float>::infinity()
                                              : static_cast<float>((i * 7919) % 1009) / 16;
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const auto all = rows(histogram_of(values.cast(dtype), 30));
      std::vector<double> counts;
      for (std::size_t row = 0; row < 30; ++row) counts.push_back(all[3 * row + 2]);
      EXPECT_EQ(counts, counted_one_by_one(values, all.front(), all[3 * 29 + 1], 30)) << count;
    }
  }
}

TEST(Histogram, RefusesNoBuckets) {
  EXPECT_THROW(static_cast<void>(histogram_of(Tensor::from({1.0}), 0)), InvalidArgument);
}

}  // namespace
}  // namespace cohort::testing
