// Which calls go to MPI's own collectives: where COHORT_ALGORITHM names them, or workers of one machine
// share no memory. CTest runs it in both settings. That results are right, network_communicator_test and
// forced_algorithm_test show.
#include "mpi/transport/mpi_transport.h"

#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <cohort/base/config.h>
#include <cohort/collective/communication_scope.h>

#include "rank_values.h"

namespace cohort {
namespace {

using testing::session;

bool is_asked_for() { return config().algorithm() == "mpi"; }

std::string algorithm_of_all_reduce(Communicator& communicator, const CallOptions& options = {}) {
  const Tensor tensor = own_values(100'000);
  communicator.all_reduce(tensor, ReduceOp::kSum, options);
  EXPECT_TRUE(bitwise_equal(tensor, filled(100'000, sum_of_ranks())));
  return std::string(communicator.last_algorithm());
}

std::string algorithm_of_broadcast(Communicator& communicator) {
  const Tensor tensor = own_values(100'000);
  communicator.broadcast(tensor, 0);
  EXPECT_TRUE(bitwise_equal(tensor, filled(100'000, 1)));
  return std::string(communicator.last_algorithm());
}

TEST(MpiCollectives, CarryOutWhatIsAskedFor) {
  const auto communicator = make_communicator();
  ASSERT_EQ(communicator->name(), "network");
  EXPECT_EQ(algorithm_of_all_reduce(*communicator) == "mpi", is_asked_for());
  if (is_asked_for()) {
    EXPECT_EQ(communicator->last_choice(), "forced");
  }
}

TEST(MpiCollectives, MoveWhatCannotGoThroughSharedMemory) {
  const auto communicator = make_communicator();
  EXPECT_EQ(algorithm_of_broadcast(*communicator), "mpi");
  EXPECT_EQ(communicator->last_choice(), is_asked_for() ? "forced" : "model");
}

TEST(MpiCollectives, LeaveSmallAndUrgentCallsAlone) {
  const auto communicator = make_communicator();
  communicator->all_reduce(filled(8, 1), ReduceOp::kSum);
  EXPECT_EQ(communicator->last_choice(), "size");
  EXPECT_NE(algorithm_of_all_reduce(*communicator, {.priority = Priority::kUrgent}), "mpi");
}

TEST(MpiCollectives, LeaveRingsToThoseThatAskForThem) {
  const auto communicator = make_communicator();
  const CommunicationScope scope(*communicator, {.implementation = CommunicationImplementation::kRing});
  EXPECT_EQ(algorithm_of_all_reduce(*communicator), "two_level_ring");
}

TEST(MpiCollectives, LeaveReproducibleSumsAlone) {
  const auto communicator = session().make_communicator({.timeout_seconds = 20, .reproducible = true});
  if (session().size() > 2) {
    EXPECT_NE(algorithm_of_all_reduce(*communicator), "mpi");
  }
  EXPECT_EQ(algorithm_of_broadcast(*communicator), "mpi");
}

TEST(MpiCollectives, AreForAllWorkersAndNotForGroups) {
  const auto communicator = make_communicator();
  const auto group = communicator->split(0, -session().rank());
  const Tensor tensor = own_values(100'000);
  group->broadcast(tensor, 0);
  EXPECT_TRUE(bitwise_equal(tensor, filled(100'000, static_cast<float>(session().size()))));
  EXPECT_NE(group->last_algorithm(), "mpi");
}

TEST(MpiCollectives, AreForOneMemberOnEachWorker) {
  const auto communicators = session().make_communicators({.timeout_seconds = 20}, 2);
  std::vector<std::thread> threads;
  for (const auto& communicator : communicators) {
    threads.emplace_back([&communicator] {
      communicator->broadcast(filled(100'000, 1), 0);
      EXPECT_NE(communicator->last_algorithm(), "mpi");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(MpiCollectives, RefuseMoreElementsThanMpiCanCount) {
  const auto comms = std::make_shared<mpi::SharedComms>(
      std::make_shared<mpi::MpiEnvironment>(mpi::thread_level()), MPI_COMM_WORLD, 1, false);
  const mpi::MpiCollectives collectives(comms);
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<int>::max());
  CollectiveCall call;
  call.kind = CollectiveKind::kAllGather;
  call.elements = kMost / static_cast<std::size_t>(session().size());
  EXPECT_TRUE(collectives.is_legal(call));
  ++call.elements;
  EXPECT_FALSE(collectives.is_legal(call));
  // Only a kind whose buffers hold a block of each member has so many times its elements.
  call.kind = CollectiveKind::kAllReduce;
  call.elements = kMost;
  EXPECT_TRUE(collectives.is_legal(call));
  ++call.elements;
  EXPECT_FALSE(collectives.is_legal(call));
  call.kind = CollectiveKind::kAllGather;
  const std::vector<std::size_t> counts{kMost / 2, kMost / 2 + 2};
  call.elements = 1;
  call.counts = counts;
  EXPECT_FALSE(collectives.is_legal(call));
}

}  // namespace
}  // namespace cohort
