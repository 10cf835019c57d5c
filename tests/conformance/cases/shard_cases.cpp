// How variables are cut into shards, and which server each goes to.
#include <cohort/server/partitioners.h>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

#include "server/shard_placer.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr DType kFloat = DType::kFloat32;

TEST(Shards, Case119_PartitionersCountShards) {
  EXPECT_THAT(FixedShardsPartitioner(2)({10, 3}, kFloat), ElementsAre(2, 1));
  const auto by_least = [](int max_shards) {
    return MinSizePartitioner({.min_shard_bytes = 4, .max_shards = max_shards})({6, 1}, kFloat);
  };
  EXPECT_THAT(by_least(2), ElementsAre(2, 1));
  EXPECT_THAT(by_least(10), ElementsAre(6, 1));
  EXPECT_THAT(MaxSizePartitioner({.max_shard_bytes = 4})({6, 1}, kFloat), ElementsAre(6, 1));
  EXPECT_THAT(MaxSizePartitioner({.max_shard_bytes = 4, .max_shards = 2})({6, 1}, kFloat), ElementsAre(2, 1));
  EXPECT_THAT(MaxSizePartitioner({.max_shard_bytes = 1024})({6, 1}, kFloat), ElementsAre(1, 1));
}

TEST(Shards, Case121_PartsGoToTheServersInTurn) {
  const ShardPlacement ten_rows = ShardPlacer(FixedShardsPartitioner(4), 2).place({10}, kFloat);
  ASSERT_TRUE(ten_rows.layout);
  EXPECT_THAT(ten_rows.layout->extents(), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(ten_rows.servers, ElementsAre(0, 1, 0, 1));
  const ShardPlacement three_rows = ShardPlacer(FixedShardsPartitioner(4), 2).place({3}, kFloat);
  ASSERT_TRUE(three_rows.layout);
  EXPECT_THAT(three_rows.layout->extents(), ElementsAre(1, 1, 1));
  EXPECT_THAT(three_rows.servers, ElementsAre(0, 1, 0));
}

TEST(Shards, Case122_PartitionersThatReturnNonsenseAreNamed) {
  // Nothing, which the original's partitioners may return as well, is no vector.
  for (const std::vector<int>& counts : {std::vector<int>{}, {0, 1, 1}, {2, 2, 1}}) {
    ShardPlacer placer([&](const Shape& /*shape*/, DType /*dtype*/) { return counts; }, 2);
    EXPECT_THAT(
        [&] {
          return placer.place({4, 2, 1}, kFloat);
        },
        ThrowsMessage<InvalidArgument>(HasSubstr("variable_partitioner")))
        << ::testing::PrintToString(counts);
  }
}

}  // namespace
}  // namespace cohort
