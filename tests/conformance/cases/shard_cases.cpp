// How variables are cut into shards.
#include <cohort/server/partitioners.h>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

#include "server/shards/shard_placer.h"

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

TEST(Shards, Case122_PartitionersThatReturnNonsenseAreNamed) {
  // Nothing, which the original's partitioners may return as well, is no vector.
  for (const std::vector<int>& counts : {std::vector<int>{}, {0, 1, 1}, {2, 2, 1}}) {
    const ShardPlacer placer([&](const Shape& /*shape*/, DType /*dtype*/) { return counts; }, 2);
    EXPECT_THAT(
        [&] {
          static_cast<void>(placer.cut({4, 2, 1}, kFloat));
        },
        ThrowsMessage<InvalidArgument>(HasSubstr("variable_partitioner")))
        << ::testing::PrintToString(counts);
  }
}

}  // namespace
}  // namespace cohort
