// Sums that do not depend on the order.
#include "train/normalization/batch_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>

namespace cohort {
namespace {

double sum_of(const std::vector<double>& numbers, DType dtype) {
  ExactSums sums(1, dtype);
  for (const double number : numbers) sums.add(0, number);
  return sums.get(0).high;
}

class ExactSum : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Widths, ExactSum, ::testing::Values(DType::kFloat32, DType::kFloat64));

TEST_P(ExactSum, KeepsWhatAPlainSumLoses) {
  EXPECT_EQ(sum_of({}, GetParam()), 0);
  EXPECT_EQ(sum_of({1e30, 1, -1e30}, GetParam()), 1);
  EXPECT_EQ(sum_of({-1e30, -1, 1e30}, GetParam()), -1);
  EXPECT_EQ(sum_of({0x1p-149, 0x1p127, -0x1p127}, GetParam()), 0x1p-149);
  EXPECT_EQ(sum_of({-0x1p-149}, GetParam()), -0x1p-149);
  EXPECT_EQ(sum_of({-0.1F, -0.2F}, GetParam()), static_cast<double>(-0.1F) + static_cast<double>(-0.2F));
}

TEST_P(ExactSum, IsTheSameInAnyOrderAndAnyParts) {
  std::mt19937 random(1);
  std::vector<double> numbers;
  for (int i = 0; i < 1000; ++i)
    numbers.push_back(std::ldexp(static_cast<int>(random()), static_cast<int>(random() % 200) - 100));
  const double whole = sum_of(numbers, GetParam());
  for (int round = 0; round < 5; ++round) {
    std::ranges::shuffle(numbers, random);
    EXPECT_EQ(sum_of(numbers, GetParam()), whole);
    ExactSums first(1, GetParam());
    ExactSums second(1, GetParam());
    for (std::size_t i = 0; i < numbers.size(); ++i) (i % 3 == 0 ? first : second).add(0, numbers[i]);
    const auto more = second.settled().span<std::int64_t>();
    const auto all = first.settled().span<std::int64_t>();
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += more[i];
    EXPECT_EQ(first.get(0).high, whole);
  }
}

TEST_P(ExactSum, HasAllDigitsOfSquares) {
  ExactSums sums(2, GetParam());
  const double number = 1 + 0x1p-23;
  sums.add_square(1, number);
  sums.add(1, -1 - 0x1p-22);
  EXPECT_EQ(sums.get(1).high, 0x1p-46);
  EXPECT_EQ(sums.get(0).high, 0) << "the neighbour";
}

TEST(ExactSums, OfDoublesHaveAllDigitsOfTheirSquares) {
  ExactSums sums(1, DType::kFloat64);
  sums.add_square(0, 1 + 0x1p-52);
  sums.add(0, -1 - 0x1p-51);
  EXPECT_EQ(sums.get(0).high, 0x1p-104);
}

TEST(ExactSums, OfDoublesReachBothEnds) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(sum_of({kLargest, kSmallest, -kLargest}, DType::kFloat64), kSmallest);
  EXPECT_EQ(sum_of({-kLargest, -kSmallest, kLargest}, DType::kFloat64), -kSmallest);
  EXPECT_EQ(sum_of({-kLargest}, DType::kFloat64), -kLargest);
}

TEST_P(ExactSum, OfWhatIsNotFiniteIsNotANumber) {
  EXPECT_TRUE(std::isnan(sum_of({1, std::numeric_limits<double>::infinity()}, GetParam())));
  EXPECT_TRUE(std::isnan(sum_of({std::numeric_limits<double>::quiet_NaN()}, GetParam())));
}

}  // namespace
}  // namespace cohort
