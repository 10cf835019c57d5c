// How variables spread over servers.
#include "server/shard_placer.h"

#include <stdexcept>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

using ::testing::ElementsAre;

constexpr DType kFloat = DType::kFloat32;

TEST(ShardPlacer, TakesTheServersInTurn) {
  ShardPlacer placer({}, 3);
  for (const int server : {0, 1, 2, 0}) {
    const ShardPlacement placement = placer.place({5, 2}, kFloat);
    EXPECT_THAT(placement.servers, ElementsAre(server));
    EXPECT_FALSE(placement.layout) << "nothing is cut without a partitioner";
  }
}

TEST(ShardPlacer, TakesATurnPerShard) {
  ShardPlacer placer(FixedShardsPartitioner(2), 3);
  EXPECT_THAT(placer.place({}, kFloat).servers, ElementsAre(0));
  const ShardPlacement cut = placer.place({5, 2}, kFloat);
  EXPECT_THAT(cut.servers, ElementsAre(1, 2));
  ASSERT_TRUE(cut.layout);
  EXPECT_THAT(cut.layout->extents(), ElementsAre(3, 2));
  const ShardPlacement single_row = placer.place({1, 2}, kFloat);
  EXPECT_THAT(single_row.servers, ElementsAre(0));
  EXPECT_FALSE(single_row.layout) << "one shard is a variable like others";
  EXPECT_THAT(placer.place({4}, kFloat).servers, ElementsAre(1, 2));
}

TEST(ShardPlacer, TakesNoTurnForWhatFails) {
  const Partitioner failing_for_vectors = [](const Shape& shape, DType /*dtype*/) {
    if (shape.rank() == 1) throw std::runtime_error("not vectors");
    return std::vector{shape.rank() == 2 ? 2 : 0, 1};
  };
  ShardPlacer placer(failing_for_vectors, 2);
  EXPECT_THAT(placer.place({}, kFloat).servers, ElementsAre(0));
  EXPECT_THROW((void)placer.place({4}, kFloat), std::runtime_error);
  EXPECT_THROW((void)placer.place({4, 1, 1}, kFloat), InvalidArgument);
  EXPECT_THAT(placer.place({4, 1}, kFloat).servers, ElementsAre(1, 0));
}

TEST(ShardPlacer, NeedsAServer) { EXPECT_THROW(ShardPlacer({}, 0), InvalidArgument); }

}  // namespace
}  // namespace cohort
