// Into how many shards partitioners cut, and which servers the shards go to.
#include <random>
#include <stdexcept>

#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/server/partitioners.h>

#include "server/shards/shard_placer.h"

namespace cohort {
namespace {

// Into how many shards the partitioners cut, and what is refused of those that users write.

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr DType kFloat = DType::kFloat32;

TEST(FixedShardsPartitioner, GivesTheSameNumberButAtMostOnePerRow) {
  const FixedShardsPartitioner fixed(4);
  EXPECT_THAT(fixed({10, 3}, kFloat), ElementsAre(4, 1));
  EXPECT_THAT(fixed({10, 3}, kFloat, 1), ElementsAre(1, 3));
  EXPECT_THAT(fixed({10, 3}, kFloat, -2), ElementsAre(4, 1));
  EXPECT_THAT(fixed({0, 3}, kFloat), ElementsAre(1, 1));
}

/// The rules by trial: every possible number of shards, each row by row.
int most_shards_of_at_least(const Shape& shape, DType dtype, std::int64_t bytes, int max_shards) {
  const auto total = static_cast<std::int64_t>(shape.elements() * size_of(dtype));
  int most = 1;
  for (int shards = 1; shards <= max_shards && shards <= shape[0]; ++shards) {
    if ((shards - 1) * bytes < total) most = shards;
  }
  return most;
}

int least_shards_of_at_most(const Shape& shape, DType dtype, std::int64_t bytes, int max_shards) {
  const auto row_bytes = static_cast<std::int64_t>(shape.row().elements() * size_of(dtype));
  int shards = 0;
  for (std::int64_t row = 0, room = 0; row < shape[0]; ++row, room -= row_bytes) {
    if (shards == 0 || room < row_bytes) {
      ++shards;
      room = std::max(bytes, row_bytes);
    }
  }
  return std::min(shards, max_shards);
}

TEST(SizePartitioners, AgreeWithTheirRulesByTrial) {
  std::mt19937 random(20);
  const auto draw = [&](int lowest, int highest) {
    return std::uniform_int_distribution<int>(lowest, highest)(random);
  };
  for (int trial = 0; trial < 2000; ++trial) {
    const Shape shape{draw(1, 40), draw(1, 5), draw(1, 4)};
    const DType dtype = kAllDTypes[static_cast<std::size_t>(draw(0, kAllDTypes.size() - 1))];
    const std::int64_t bytes = draw(1, 300);
    const int max_shards = draw(1, 20);
    EXPECT_THAT(MinSizePartitioner({.min_shard_bytes = bytes, .max_shards = max_shards})(shape, dtype),
                ElementsAre(most_shards_of_at_least(shape, dtype, bytes, max_shards), 1, 1))
        << to_string(shape) << " of " << to_string(dtype) << ", " << bytes << " bytes, " << max_shards;
    EXPECT_THAT(MaxSizePartitioner({.max_shard_bytes = bytes, .max_shards = max_shards})(shape, dtype),
                ElementsAre(least_shards_of_at_most(shape, dtype, bytes, max_shards), 1, 1))
        << to_string(shape) << " of " << to_string(dtype) << ", " << bytes << " bytes, " << max_shards;
  }
}

TEST(SizePartitioners, CutAlongTheAxisThatIsAskedFor) {
  EXPECT_THAT(MinSizePartitioner({.min_shard_bytes = 4, .max_shards = 10})({3, 10, 2}, kFloat, 1),
              ElementsAre(1, 10, 1));
  EXPECT_THAT(MaxSizePartitioner({.max_shard_bytes = 16})({10, 3}, kFloat, -1), ElementsAre(1, 3));
}

TEST(SizePartitioners, LeaveVariablesWithoutElementsWhole) {
  EXPECT_THAT(MinSizePartitioner({.min_shard_bytes = 4, .max_shards = 4})({0, 3}, kFloat), ElementsAre(1, 1));
  EXPECT_THAT(MaxSizePartitioner({.max_shard_bytes = 4})({3, 0}, kFloat), ElementsAre(1, 1));
}

TEST(SizePartitioners, CountBytesBeyond64Bits) {
  const Shape huge{std::int64_t{1} << 31, std::int64_t{1} << 31};
  EXPECT_THAT(MinSizePartitioner({.max_shards = 7})(huge, DType::kFloat64), ElementsAre(7, 1));
  EXPECT_THAT(MaxSizePartitioner({.max_shard_bytes = 1})(huge, DType::kFloat64),
              ElementsAre(std::numeric_limits<int>::max(), 1));
}

TEST(Partitioners, RefuseOptionsBelow1) {
  EXPECT_THAT([] { FixedShardsPartitioner(0); },
              ThrowsMessage<InvalidArgument>(HasSubstr("FixedShardsPartitioner: num_shards is 0")));
  EXPECT_THAT([] { MinSizePartitioner({.min_shard_bytes = 0}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("MinSizePartitioner: min_shard_bytes is 0")));
  EXPECT_THAT([] { MinSizePartitioner({.max_shards = -1}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("MinSizePartitioner: max_shards is -1")));
  EXPECT_THAT([] { MaxSizePartitioner({}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("MaxSizePartitioner: max_shard_bytes is 0")));
  EXPECT_THAT([] { MaxSizePartitioner({.max_shard_bytes = 5, .max_shards = 0}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("MaxSizePartitioner: max_shards is 0")));
}

TEST(Partitioners, NameShapeAndAxisWhenThereIsNoSuchAxis) {
  const auto names_both = ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("axis 2"), HasSubstr("[10, 3]")));
  EXPECT_THAT([] { return FixedShardsPartitioner(2)({10, 3}, kFloat, 2); }, names_both);
  EXPECT_THAT([] { return MinSizePartitioner()({10, 3}, kFloat, 2); }, names_both);
  EXPECT_THAT([] { return MaxSizePartitioner({.max_shard_bytes = 4})({10, 3}, kFloat, 2); }, names_both);
  EXPECT_THAT([] { return FixedShardsPartitioner(2)({}, kFloat); },
              ThrowsMessage<InvalidArgument>(HasSubstr("[]")));
}

Partitioner returning(const std::vector<int>& counts) {
  return [counts](const Shape& /*shape*/, DType /*dtype*/) { return counts; };
}

TEST(ShardCount, IsTheFirstCountButAtMostOnePerRow) {
  EXPECT_EQ(shard_count(returning({2, 1}), {4, 2}, kFloat), 2);
  EXPECT_EQ(shard_count(returning({9, 1}), {4, 2}, kFloat), 4);
  EXPECT_EQ(shard_count(returning({9, 1}), {0, 2}, kFloat), 1);
  EXPECT_EQ(shard_count(FixedShardsPartitioner(3), {4, 2}, kFloat), 3);
}

TEST(ShardCount, Is1WhereNothingIsCut) {
  EXPECT_EQ(shard_count({}, {4, 2}, kFloat), 1);
  EXPECT_EQ(shard_count(returning({}), {}, kFloat), 1) << "nobody asks for scalars";
}

TEST(ShardCount, RefusesCountsThatAreNoneOfRows) {
  const auto refused = [](const char* why) {
    return ThrowsMessage<InvalidArgument>(
        AllOf(HasSubstr("variable_partitioner"), HasSubstr("float32[4, 2, 1]"), HasSubstr(why)));
  };
  const auto counting = [](const std::vector<int>& counts) {
    return [counts] { return shard_count(returning(counts), {4, 2, 1}, kFloat); };
  };
  EXPECT_THAT(counting({}), refused("one count per axis"));
  EXPECT_THAT(counting({0, 1, 1}), refused("[0, 1, 1]"));
  EXPECT_THAT(counting({-1, 1, 1}), refused("first count must be at least 1"));
  EXPECT_THAT(counting({2, 2, 1}), refused("first axis only"));
  EXPECT_THAT(counting({1, 0, 1}), refused("first axis only"));
}

// How variables spread over servers.

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
