// Groups split off communicators of threads, on one node and on several that are pretended.
#include <barrier>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/call/split_exchange.h"
#include "device/node_heap.h"

#include "communicator_contracts.h"
#include "members.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr CommunicationOptions kShort{.timeout_seconds = 0.1};

class GroupsOfThreads : public ::testing::TestWithParam<int> {};

TEST_P(GroupsOfThreads, HaveTheirMembersInOrder) { for_each_member(GetParam(), check_split); }
TEST_P(GroupsOfThreads, AreUsedBesideEachOther) {
  for_each_member(GetParam(), check_groups_beside_each_other);
}
TEST_P(GroupsOfThreads, KeepTheirMessages) {
  for_each_member(GetParam(),
                  [](Communicator& communicator) { check_messages_stay_in_their_group(communicator, 3); });
}
TEST_P(GroupsOfThreads, NeedEverybodyToSplit) {
  for_each_member(GetParam(), check_split_without_agreement);
  for_each_member(GetParam(), check_split_without_the_last, kShort);
}
TEST_P(GroupsOfThreads, KeepTheirErrors) {
  for_each_member(GetParam(), check_errors_stay_in_their_group);
  for_each_member(GetParam(), check_leaving_a_group);
}

INSTANTIATE_TEST_SUITE_P(Members, GroupsOfThreads, ::testing::Values(1, 2, 3, 4, 5, 7));

TEST(GroupsOfThreads, MayBeMadeWithoutTakingMemory) {
  for_each_member(3, [](Communicator& communicator) {
    const auto split_often = [&](int times) {
      for (int i = 0; i < times; ++i) communicator.split(communicator.rank() % 2)->barrier();
      communicator.barrier();
    };
    split_often(10);
    const std::size_t before = NodeHeap::of_this_process()->statistics().growths;
    communicator.barrier();
    split_often(2000);
    // Members that run ahead hold some more blocks at once; memory for each split would take a thousand
    // growths.
    EXPECT_LE(NodeHeap::of_this_process()->statistics().growths, before + 4);
  });
}

class GroupsBetweenNodes : public ::testing::TestWithParam<Layout> {};

TEST_P(GroupsBetweenNodes, HaveTheirMembersInOrder) { for_each_member(GetParam(), check_split); }
TEST_P(GroupsBetweenNodes, AreUsedBesideEachOther) {
  for_each_member(GetParam(), check_groups_beside_each_other);
}
TEST_P(GroupsBetweenNodes, NeedEverybodyToSplit) {
  for_each_member(GetParam(), check_split_without_agreement);
  for_each_member(GetParam(), check_split_without_the_last, kShort);
}
TEST_P(GroupsBetweenNodes, KeepTheirErrors) {
  for_each_member(GetParam(), check_errors_stay_in_their_group);
  for_each_member(GetParam(), check_leaving_a_group);
}
TEST_P(GroupsBetweenNodes, NameWhoHasStoppedBeforeWhoWaits) {
  std::barrier all(GetParam().nodes * GetParam().members);
  for_each_member(GetParam(), [&](Communicator& communicator) {
    EXPECT_EQ(communicator.name(), "network");
    for (const Driver driver : {Driver::kCaller, Driver::kProgressThread}) {
      const std::unique_ptr<Communicator> group = communicator.split(0);
      check_stopped_before_waiting(*group, driver, [&] { all.arrive_and_wait(); });
    }
  });
}
TEST_P(GroupsBetweenNodes, AreOfOneNodeWhereTheirMembersAre) {
  for_each_member(GetParam(), [](Communicator& communicator) {
    const int node = communicator.members()[static_cast<std::size_t>(communicator.rank())].worker;
    EXPECT_EQ(communicator.split(node)->name(), "node");
    EXPECT_EQ(communicator.split(0)->name(), "network");
  });
}

TEST(GroupsBetweenNodes, AreSoManyAtATime) {
  for_each_member(Layout{2, 1}, [](Communicator& communicator) {
    std::vector<std::unique_ptr<Communicator>> groups;
    const auto fill = [&] {
      while (groups.size() + 1 < ContextIdSet::kIds) groups.push_back(communicator.split(0));
    };
    fill();
    EXPECT_THAT([&] { static_cast<void>(communicator.split(0)); },
                ThrowsMessage<Unavailable>(HasSubstr("destroy some groups first")));
    communicator.barrier();
    groups.back()->barrier();
    groups.erase(groups.begin() + 5, groups.begin() + 9);
    communicator.barrier();
    fill();
    groups[5]->barrier();
    groups.back()->barrier();
  });
}

TEST(ContextIdPool, AreNotTakenTwiceByGroupsThatAreMadeAtTheSameTime) {
  ContextIdPool ids(ContextIdSet::kIds);
  const ContextId id = ids.free_ids().lowest().value();
  ids.take(id);
  const auto taking = [&](const ContextId& other) { return [&ids, other] { ids.take(other); }; };
  EXPECT_THAT(taking(id), ThrowsMessage<WrongContext>(HasSubstr("at the same time")));
  EXPECT_THROW(taking({.number = id.number, .generation = id.generation + 5})(), WrongContext);
  EXPECT_THROW(taking({.number = id.number + 1, .generation = id.generation})(), WrongContext);
  EXPECT_NO_THROW(taking(ids.free_ids().lowest().value())());
}

INSTANTIATE_TEST_SUITE_P(Layouts, GroupsBetweenNodes,
                         ::testing::Values(Layout{2, 1}, Layout{2, 2}, Layout{3, 1}, Layout{2, 3},
                                           Layout{3, 2}),
                         [](const auto& instance) {
                           return fmt::format("{}x{}", instance.param.nodes, instance.param.members);
                         });

}  // namespace
}  // namespace cohort::testing
