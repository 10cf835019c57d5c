// Structures of distributed values, taken apart and put together.
#include <cohort/value/regroup.h>

#include <string>

#include <gmock/gmock.h>

#include <cohort/value/mirrored.h>

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Regroup, RefusesStructuresThatDiffer) {
  EXPECT_THAT(
      [] {
        return regroup(PerReplica(std::vector<std::vector<int>>{{1}, {1, 2}}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("replica 1 has 2 elements, replica 0 has 1")));
  EXPECT_THAT(
      [] {
        return regroup(PerReplica(std::vector<std::map<int, int>>{{{1, 1}}, {{1, 1}}, {{2, 1}}}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("replica 2 has a map with other keys")));
  EXPECT_THROW(static_cast<void>(regroup(PerReplica<int>())), InvalidArgument);
}

TEST(Regroup, KeepsWhatIsMirroredMirrored) {
  using Pair = std::pair<int, std::vector<double>>;
  const auto [numbers, list] = regroup(Mirrored(std::vector<Pair>{{1, {2.5}}, {1, {2.5}}}));
  static_assert(std::is_same_v<decltype(numbers), const Mirrored<int>>);
  EXPECT_THAT(numbers.components(), ElementsAre(1, 1));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0] + 0, 2.5) << "an operand outside replicas, too";
}

TEST(Regroup, KeepsOneWorkersPartOfManyReplicasAPart) {
  const auto [number, list] = regroup(PerReplica(std::vector<std::pair<int, std::vector<int>>>{{1, {2}}}, 3));
  EXPECT_THROW(static_cast<void>(number + 1), WrongContext);
  EXPECT_THROW(static_cast<void>(list[0] + 1), WrongContext);
  EXPECT_EQ(regroup(PerReplica(std::vector<std::pair<int, int>>{{1, 2}})).first + 1, 2);
}

TEST(Regroup, KeepsOptionalsPerReplica) {
  const auto grouped = regroup(PerReplica(std::vector<std::optional<int>>{{}, 5}));
  EXPECT_THAT(grouped.components(), ElementsAre(std::nullopt, 5));
}

TEST(SelectReplica, TakesComponentsFromAnywhereInAStructure) {
  const PerReplica own(std::vector{1, 2});
  const std::map<std::string, std::pair<PerReplica<int>, int>> map{{"k", {own, 9}}};
  const std::tuple value(own, std::vector{own, own}, std::optional(own), Mirrored(std::vector{3}), 4.5, map);
  const auto second = select_replica(1, value);
  EXPECT_EQ(second, std::tuple(2, std::vector{2, 2}, std::optional(2), 3, 4.5,
                               (std::map<std::string, std::pair<int, int>>{{"k", {2, 9}}})));
  EXPECT_THAT([&] { return select_replica(2, value); },
              ThrowsMessage<InvalidArgument>(HasSubstr("PerReplica has 2 components, no number 2")));
}

TEST(SelectReplica, LeavesOtherValuesAsTheyAre) {
  EXPECT_EQ(select_replica(3, std::string("text")), "text");
  EXPECT_EQ(select_replica(3, std::optional<PerReplica<int>>()), std::nullopt);
}

}  // namespace
}  // namespace cohort
