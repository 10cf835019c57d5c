// Groups split off communicators over ranks, whatever the Session's communicators are.
#include <mpi.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "communicator_contracts.h"
#include "device/node_heap.h"
#include "rank_values.h"
#include "thrown.h"

namespace cohort {
namespace {

TEST(GroupsOfRanks, HaveTheirMembersInOrder) { testing::check_split(*make_communicator()); }

TEST(GroupsOfRanks, AreUsedBesideEachOther) { testing::check_groups_beside_each_other(*make_communicator()); }

TEST(GroupsOfRanks, KeepTheirMessages) {
  testing::check_messages_stay_in_their_group(*make_communicator(), 3);
}

TEST(GroupsOfRanks, KeepTheirMessagesThatAreTooLongForALabel) {
  if (std::getenv("LONG_EAGER_MESSAGES") == nullptr) GTEST_SKIP() << "where MPI holds them back";
  testing::check_messages_stay_in_their_group(*make_communicator(), 10'000);
}

TEST(GroupsOfRanks, NeedEverybodyToSplit) {
  const auto communicator = make_communicator();
  testing::check_split_without_agreement(*communicator);
  const auto impatient = make_communicator(testing::short_timeout(testing::session().size()));
  testing::check_split_without_the_last(*impatient);
  meet();
}

TEST(GroupsOfRanks, KeepTheirErrors) {
  testing::check_errors_stay_in_their_group(*make_communicator());
  testing::check_leaving_a_group(*make_communicator());
  meet();
}

TEST(GroupsOfRanks, NameWhoHasStoppedBeforeWhoWaits) {
  testing::check_stopped_before_waiting(*make_communicator(), testing::Driver::kCaller, [] { meet(); });
}

/// Where MPI's table of communicators has a place: a low number as long as they are freed.
int free_place_for_communicators() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &copy);
  const int place = MPI_Comm_c2f(copy);
  MPI_Comm_free(&copy);
  return place;
}

TEST(GroupsOfRanks, MayBeMadeWithoutTakingMemoryOrContexts) {
  const auto communicator = make_communicator();
  const auto split_often = [&](int times) {
    for (int i = 0; i < times; ++i) communicator->split(testing::session().rank() % 2, -i)->barrier();
    meet();
  };
  // Workers may have been told to do without a node heap.
  const auto growths_of_heap = [] {
    const NodeHeap* const heap = NodeHeap::of_this_process();
    return heap == nullptr ? std::size_t{0} : heap->statistics().growths;
  };
  split_often(10);
  const std::size_t growths = growths_of_heap();
  const int place = free_place_for_communicators();
  // Between nodes each split takes several rounds over the network.
  split_often(communicator->name() == "network" ? 600 : 2000);
  EXPECT_EQ(growths_of_heap(), growths);
  EXPECT_LT(free_place_for_communicators(), place + 50);
}

}  // namespace
}  // namespace cohort
