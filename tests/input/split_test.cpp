#include <cohort/input/split.h>

#include <vector>

#include <gmock/gmock.h>

namespace cohort {
namespace {

std::vector<std::int64_t> sizes(std::int64_t rows, int replicas) {
  std::vector<std::int64_t> result;
  for (int replica = 0; replica < replicas; ++replica) {
    const RowRange part = part_of(rows, replica, replicas);
    result.push_back(part.end - part.begin);
  }
  return result;
}

using Sizes = std::vector<std::int64_t>;

TEST(PartOf, MakesTheFirstPartsOneRowLonger) {
  EXPECT_EQ(sizes(7, 4), (Sizes{2, 2, 2, 1}));
  EXPECT_EQ(sizes(8, 2), (Sizes{4, 4}));
  EXPECT_EQ(sizes(3, 2), (Sizes{2, 1}));
  EXPECT_EQ(sizes(1, 2), (Sizes{1, 0}));
  EXPECT_EQ(sizes(13, 12), (Sizes{2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(sizes(0, 3), (Sizes{0, 0, 0}));
}

TEST(PartOf, LeavesNoReplicaIdleWhileThereAreEnoughRows) {
  EXPECT_EQ(sizes(4, 3), (Sizes{2, 1, 1})) << "not 2, 2, 0";
  EXPECT_EQ(sizes(6, 4), (Sizes{2, 2, 1, 1})) << "not 2, 2, 2, 0";
}

TEST(PartOf, DealsOutEveryRowOnceInOrder) {
  for (std::int64_t rows = 0; rows <= 40; ++rows) {
    for (int replicas = 1; replicas <= 17; ++replicas) {
      std::int64_t next = 0;
      for (int replica = 0; replica < replicas; ++replica) {
        const RowRange part = part_of(rows, replica, replicas);
        ASSERT_EQ(part.begin, next) << rows << " rows, replica " << replica << " of " << replicas;
        ASSERT_LE((part.end - part.begin) * replicas, rows + replicas - 1) << "nearly equal";
        ASSERT_GE((part.end - part.begin) * replicas, rows - replicas + 1) << "nearly equal";
        next = part.end;
      }
      ASSERT_EQ(next, rows);
    }
  }
}

TEST(PartOf, TakesMoreRowsThanFitIn32Bits) {
  constexpr std::int64_t kRows = std::int64_t{1} << 60;
  EXPECT_EQ(part_of(kRows, 1023, 1024), (RowRange{kRows / 1024 * 1023, kRows}));
}

}  // namespace
}  // namespace cohort
