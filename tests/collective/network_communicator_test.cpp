// The contract that every Communicator fulfils, over several nodes that are pretended.
#include <gmock/gmock.h>

#include "collective_contract.h"
#include "network_members.h"

namespace cohort::testing {
namespace {

class NetworkCommunicator : public ::testing::TestWithParam<Layout> {};

TEST_P(NetworkCommunicator, NumbersItsMembersWorkerByWorker) {
  for_each_member(GetParam(), [&](Communicator& communicator) {
    EXPECT_EQ(communicator.name(), "network");
    EXPECT_EQ(communicator.size(), GetParam().nodes * GetParam().members);
    const auto rank = static_cast<std::size_t>(communicator.rank());
    EXPECT_EQ(communicator.members()[rank].worker, communicator.rank() / GetParam().members);
  });
}
TEST_P(NetworkCommunicator, ReducesExactly) { for_each_member(GetParam(), check_reductions); }
TEST_P(NetworkCommunicator, FollowsTheRulesOfArithmetic) { for_each_member(GetParam(), check_arithmetic); }
TEST_P(NetworkCommunicator, MovesData) { for_each_member(GetParam(), check_data_movement); }
TEST_P(NetworkCommunicator, WorksAtEverySizeInAnyMemory) {
  for_each_member(GetParam(), check_sizes_and_memory);
}
TEST_P(NetworkCommunicator, PassesMessages) { for_each_member(GetParam(), check_messages); }
TEST_P(NetworkCommunicator, KeepsManyInFlight) { for_each_member(GetParam(), check_async); }
TEST_P(NetworkCommunicator, ReducesPackedTensors) { for_each_member(GetParam(), check_packed); }
TEST_P(NetworkCommunicator, RefusesWrongArguments) { for_each_member(GetParam(), check_arguments); }
TEST_P(NetworkCommunicator, NamesTheOddMember) { for_each_member(GetParam(), check_mismatch); }
TEST_P(NetworkCommunicator, NamesTheMissingMember) {
  for_each_member(GetParam(), check_missing, {.timeout_seconds = 0.2});
}
TEST_P(NetworkCommunicator, AbortReleasesThoseWhoWait) {
  for_each_member(GetParam(), [](Communicator& communicator) {
    if (communicator.rank() == communicator.size() - 1) {
      communicator.abort(Aborted("the last replica failed"));
      return;
    }
    EXPECT_THROW(communicator.barrier(), Aborted);
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, NetworkCommunicator,
                         ::testing::Values(Layout{2, 1}, Layout{2, 2}, Layout{3, 1}, Layout{3, 2},
                                           Layout{2, 3}),
                         [](const auto& instance) {
                           return fmt::format("{}x{}", instance.param.nodes, instance.param.members);
                         });

}  // namespace
}  // namespace cohort::testing
