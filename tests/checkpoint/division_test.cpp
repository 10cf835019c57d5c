#include "checkpoint/saving/division.h"

#include <gmock/gmock.h>

namespace cohort::checkpoint {
namespace {

std::vector<std::uint64_t> bytes_by_worker(const std::vector<Divisible>& values, int workers) {
  std::vector<std::uint64_t> bytes(static_cast<std::size_t>(workers));
  for (const Part& part : divide(values, workers))
    bytes[static_cast<std::size_t>(part.worker)] +=
        values[part.value].bytes_of_row * static_cast<std::uint64_t>(part.rows);
  return bytes;
}

TEST(Division, CutsWhatIsLargerThanAShare) {
  for (const int workers : {1, 2, 3, 4, 7})
    for (const std::uint64_t bytes : bytes_by_worker({{8, 1000}}, workers))
      EXPECT_NEAR(double(bytes), 8000.0 / workers, 16);
}

TEST(Division, LeavesSmallValuesWhole) {
  const std::vector<Divisible> values(40, {4, 100});
  EXPECT_EQ(divide(values, 4).size(), values.size());
  EXPECT_THAT(bytes_by_worker(values, 4), ::testing::Each(4000));
}

TEST(Division, HasEachRowOnce) {
  const std::vector<Divisible> values{{100, 77}, {0, 5}, {8, 0}, {4, 1}, {1, 100000}};
  for (const int workers : {1, 2, 3, 4, 7}) {
    std::vector<std::int64_t> rows(values.size());
    std::vector<int> parts(values.size());
    for (const Part& part : divide(values, workers)) {
      EXPECT_EQ(part.first_row, rows[part.value]);
      EXPECT_LT(part.worker, workers);
      rows[part.value] += part.rows;
      ++parts[part.value];
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(rows[i], values[i].rows);
      EXPECT_GE(parts[i], 1);
    }
  }
}

}  // namespace
}  // namespace cohort::checkpoint
