#include "layout.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort::bench {
namespace {

using testing::ElementsAre;

TEST(UnevenCounts, GrowWithTheRankAndAddUp) {
  EXPECT_THAT(uneven_counts({.members = 1, .elements = 5}), ElementsAre(5));
  EXPECT_THAT(uneven_counts({.members = 3, .elements = 60}), ElementsAre(10, 20, 30));
  EXPECT_THAT(uneven_counts({.members = 3, .elements = 64}), ElementsAre(10, 20, 34));
}

TEST(UnevenCounts, OfFewElementsLeaveSomeMembersNone) {
  EXPECT_THAT(uneven_counts({.members = 3, .elements = 1}), ElementsAre(0, 0, 1));
}

TEST(BlockOfEach, IsEveryMembersInputByRank) {
  const std::vector<ResultPart> parts = block_of_each({.member = 1, .members = 3, .elements = 12});
  ASSERT_EQ(parts.size(), 3u);
  for (int member = 0; member < 3; ++member) {
    const ResultPart& part = parts[static_cast<std::size_t>(member)];
    EXPECT_EQ(part.source, member);
    EXPECT_EQ(part.first, 0u);
    EXPECT_EQ(part.elements, 4u);
  }
}

}  // namespace
}  // namespace cohort::bench
