// What every communicator must do, by members whose announcements go along a tree of levels; and the same
// bits as without one.
#include <algorithm>
#include <cstring>
#include <random>

#include <gmock/gmock.h>

#include "collective/node/levels.h"

#include "communicator_contracts.h"
#include "members.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---- the tree

std::vector<node::TreePlace> tree_of(const Spread& spread) {
  return node::make_level_tree(groups_of(spread));
}

std::vector<int> children_of(const node::TreePlace& place) {
  std::vector<int> children;
  for (const node::TreeChild& child : place.children) children.push_back(child.member);
  return children;
}

TEST(LevelTree, MeetsByCacheThenBySocketThenByMachine) {
  const std::vector<node::TreePlace> tree = tree_of({.members = 128});
  EXPECT_TRUE(tree[0].is_top());
  EXPECT_THAT(children_of(tree[0]), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 16, 24, 32, 40, 48, 56, 64));
  EXPECT_THAT(children_of(tree[8]), ElementsAre(9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(children_of(tree[64]), SizeIs(14));
  EXPECT_THAT(children_of(tree[9]), IsEmpty());
  EXPECT_EQ(tree[9].parent, 8);
  EXPECT_EQ(tree[120].parent, 64);
}

TEST(LevelTree, HasAllMembersOnceWhereverTheyAre) {
  for (const bool round_robin : {false, true}) {
    for (const int members : {1, 2, 3, 5, 9, 63, 64, 65, 200}) {
      const std::vector<node::TreePlace> tree = tree_of({.members = members, .round_robin = round_robin});
      std::vector<int> found{0};
      for (std::size_t member = 0; member < tree.size(); ++member) {
        EXPECT_EQ(tree[member].is_top(), member == 0);
        for (const node::TreeChild& child : tree[member].children) {
          found.push_back(child.member);
          const node::TreePlace& place = tree[static_cast<std::size_t>(child.member)];
          EXPECT_EQ(place.parent, static_cast<int>(member));
          EXPECT_EQ(child.has_children, !place.children.empty());
        }
      }
      std::ranges::sort(found);
      EXPECT_THAT(found, SizeIs(static_cast<std::size_t>(members)));
      EXPECT_EQ(std::ranges::adjacent_find(found), found.end());
    }
  }
}

TEST(LevelTree, SaysWhoIsBelowAChild) {
  const std::vector<node::TreePlace> tree =
      tree_of({.members = 8, .machine = "pack:2 core:4 pu:1", .round_robin = true});
  ASSERT_THAT(tree[0].children, SizeIs(4));
  const node::TreeChild& other_socket = tree[0].children.back();
  EXPECT_EQ(other_socket.member, 1);
  EXPECT_THAT(other_socket.subtree, ElementsAre(node::MemberRange{1, 2}, node::MemberRange{3, 4},
                                                node::MemberRange{5, 6}, node::MemberRange{7, 8}));
}

TEST(LevelTree, DividesWideGroups) {
  const std::vector<node::TreePlace> tree = tree_of({.members = 64, .machine = "pack:1 core:64 pu:1"});
  EXPECT_THAT(tree[0].children, SizeIs(14));
  EXPECT_THAT(tree[8].children, SizeIs(7));
}

// ---- the contracts

class Levels : public ::testing::TestWithParam<Spread> {};

TEST_P(Levels, ReduceExactly) { for_each_member(GetParam(), check_reductions); }
TEST_P(Levels, FollowTheRulesOfArithmetic) { for_each_member(GetParam(), check_arithmetic); }
TEST_P(Levels, MoveData) { for_each_member(GetParam(), check_data_movement); }
TEST_P(Levels, WorkAtEverySizeInAnyMemory) { for_each_member(GetParam(), check_sizes_and_memory); }
TEST_P(Levels, PassMessages) { for_each_member(GetParam(), check_messages); }
TEST_P(Levels, KeepManyInFlight) { for_each_member(GetParam(), check_async); }
TEST_P(Levels, ReducePackedTensors) { for_each_member(GetParam(), check_packed); }
TEST_P(Levels, NameTheOddMember) { for_each_member(GetParam(), check_mismatch); }
TEST_P(Levels, NameTheMissingMember) {
  for_each_member(GetParam(), check_missing, {.timeout_seconds = short_timeout(GetParam().members)});
}
TEST_P(Levels, AgreeOnCallsOfOthers) { for_each_member(GetParam(), check_agreement_on_different_calls); }
TEST_P(Levels, NameWhoDoesNotComeToAgree) {
  for_each_member(GetParam(), check_agreement_with_a_missing_member,
                  {.timeout_seconds = short_timeout(GetParam().members)});
}

INSTANTIATE_TEST_SUITE_P(Members, Levels,
                         ::testing::Values(Spread{2}, Spread{3}, Spread{4, "pack:2 core:2 pu:1", true},
                                           Spread{9}, Spread{17, "pack:2 l3:4 core:4 pu:1", true}));

// ---- the bits

std::vector<float> values_of(int member, std::size_t elements) {
  std::mt19937 random(static_cast<std::uint32_t>(member));
  std::uniform_real_distribution<float> distribution(-1e4F, 1e4F);
  std::vector<float> values(elements);
  std::ranges::generate(values, [&] { return distribution(random); });
  return values;
}

/// What member 1 gets from all-reduces of several lengths.
std::vector<float> results_of(ReduceOp op, const Spread& spread, const LevelOptions& levels) {
  std::vector<float> results;
  for_each_member(
      spread,
      [&](Communicator& communicator) {
        for (const std::size_t elements :
             std::initializer_list<std::size_t>{1, 14, 15, 200, 2048, 2049, 40'000, 100'000}) {
          const std::vector<float> values = values_of(communicator.rank(), elements);
          const Tensor tensor =
              Tensor::from(std::span<const float>(values), {static_cast<std::int64_t>(elements)});
          communicator.all_reduce(tensor, op);
          if (communicator.rank() == 1)
            results.insert(results.end(), tensor.span<float>().begin(), tensor.span<float>().end());
        }
      },
      {}, levels);
  return results;
}

TEST(LevelsOfManyMembers, GiveTheSameBitsAsWithout) {
  for (const Spread& spread : {Spread{.members = 64}, Spread{.members = 64, .round_robin = true},
                               Spread{.members = 11, .machine = "pack:3 core:4 pu:1"}}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kProd}) {
      const std::vector<float> with = results_of(op, spread, {.most_members_without_tree = 1});
      const std::vector<float> without = results_of(op, spread, {.most_members_without_tree = 4096});
      ASSERT_EQ(with.size(), without.size());
      EXPECT_EQ(std::memcmp(with.data(), without.data(), with.size() * sizeof(float)), 0)
          << spread.members << " " << spread.round_robin << " " << to_string(op);
    }
  }
}

TEST(LevelsOf128Members, WorkInCallsOfAllKinds) {
  for_each_member(Spread{.members = 128}, [](Communicator& communicator) {
    check_data_movement(communicator);
    check_async(communicator);
  });
}

}  // namespace
}  // namespace cohort::testing
