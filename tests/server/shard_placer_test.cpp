// How variables spread over servers.
#include "server/shard_placer.h"

#include <stdexcept>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

using ::testing::ElementsAre;

constexpr DType kValues = DType::kFloat32;

TEST(ShardPlacer, GivesTheServersInTurn) {
  ShardPlacer placer({}, 3);
  for (const int server : {0, 1, 2, 0}) EXPECT_EQ(placer.next_server(), server);
}

TEST(ShardPlacer, CutsAsThePartitionerSays) {
  const ShardPlacer placer(FixedShardsPartitioner(2), 3);
  const auto cut = placer.cut({5, 2}, kValues);
  ASSERT_TRUE(cut);
  EXPECT_THAT(cut->extents(), ElementsAre(3, 2));
  EXPECT_FALSE(placer.cut({}, kValues));
  EXPECT_FALSE(placer.cut({1, 2}, kValues)) << "one shard is a variable like others";
  EXPECT_FALSE(ShardPlacer({}, 3).cut({5, 2}, kValues)) << "nothing is cut without a partitioner";
}

TEST(ShardPlacer, PassesOnThePartitionersErrors) {
  const ShardPlacer throwing([](const Shape&, DType) -> std::vector<int> { throw std::runtime_error("no"); },
                             2);
  EXPECT_THROW((void)throwing.cut({4}, kValues), std::runtime_error);
  const ShardPlacer wrong([](const Shape&, DType) { return std::vector{0, 1}; }, 2);
  EXPECT_THROW((void)wrong.cut({4, 1}, kValues), InvalidArgument);
}

TEST(ShardPlacer, NeedsAServer) { EXPECT_THROW(ShardPlacer({}, 0), InvalidArgument); }

}  // namespace
}  // namespace cohort
