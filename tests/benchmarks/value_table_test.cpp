#include "value_table.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

namespace cohort::bench {
namespace {

/// The sequence 0, 1, 2, ... 1020, 0, 1, ...
ValueTable counting() {
  std::vector<std::uint32_t> numbers(ValueTable::kPeriod);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(i);
  return {sizeof(std::uint32_t), std::as_bytes(std::span(numbers))};
}

std::vector<std::uint32_t> written(std::size_t elements, std::size_t first) {
  std::vector<std::uint32_t> values(elements);
  counting().write(std::as_writable_bytes(std::span(values)), first);
  return values;
}

std::uint64_t wrong_in(const std::vector<std::uint32_t>& values, std::size_t first) {
  return counting().count_wrong(std::as_bytes(std::span(values)), first);
}

TEST(ValueTable, RepeatsItsPeriodFromAnyElementOn) {
  for (const std::size_t first :
       {std::size_t{0}, std::size_t{1}, std::size_t{1020}, std::size_t{5 * 1021 + 7}}) {
    const std::vector<std::uint32_t> values = written(5000, first);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], (first + i) % ValueTable::kPeriod)
          << "element " << i << " of those from " << first;
    }
  }
}

TEST(ValueTable, CountsElementsNotBytes) {
  std::vector<std::uint32_t> values = written(5000, 3);
  EXPECT_EQ(wrong_in(values, 3), 0u);
  values.front() ^= 0x101;
  values.back() ^= 0x80000000;
  EXPECT_EQ(wrong_in(values, 3), 2u);
}

TEST(ValueTable, TellsTheValuesOfAnotherIteration) {
  EXPECT_EQ(wrong_in(written(5000, 0), 389), 5000u);
  EXPECT_EQ(wrong_in(written(1, 0), 389), 1u);
}

TEST(ValueTable, TellsBlocksThatWereSwapped) {
  std::vector<std::uint32_t> values = written(4096, 0);
  std::swap_ranges(values.begin(), values.begin() + 2048, values.begin() + 2048);
  EXPECT_GT(wrong_in(values, 0), 0u);
}

TEST(ValueTable, TakesNothing) { EXPECT_EQ(wrong_in(written(0, 5), 5), 0u); }

}  // namespace
}  // namespace cohort::bench
