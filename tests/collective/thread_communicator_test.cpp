#include <cohort/collective/thread_communicator.h>

#include <gmock/gmock.h>

#include "collective/host_communicators.h"

#include "communicator_contracts.h"
#include "members.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

class ThreadCommunicator : public ::testing::TestWithParam<int> {};

TEST_P(ThreadCommunicator, ReducesExactly) { for_each_member(GetParam(), check_reductions); }
TEST_P(ThreadCommunicator, FollowsTheRulesOfArithmetic) { for_each_member(GetParam(), check_arithmetic); }
TEST_P(ThreadCommunicator, MovesData) { for_each_member(GetParam(), check_data_movement); }
TEST_P(ThreadCommunicator, WorksAtEverySizeInAnyMemory) {
  for_each_member(GetParam(), check_sizes_and_memory);
}
TEST_P(ThreadCommunicator, PassesMessages) { for_each_member(GetParam(), check_messages); }
TEST_P(ThreadCommunicator, KeepsManyInFlight) { for_each_member(GetParam(), check_async); }
TEST_P(ThreadCommunicator, ReducesPackedTensors) { for_each_member(GetParam(), check_packed); }
TEST_P(ThreadCommunicator, RefusesWrongArguments) { for_each_member(GetParam(), check_arguments); }
TEST_P(ThreadCommunicator, NamesTheOddMember) { for_each_member(GetParam(), check_mismatch); }
TEST_P(ThreadCommunicator, NamesTheMissingMember) {
  for_each_member(GetParam(), check_missing, {.timeout_seconds = 0.2});
}
TEST_P(ThreadCommunicator, AgreesOnCallsOfOthers) {
  for_each_member(GetParam(), check_agreement_on_different_calls);
}
TEST_P(ThreadCommunicator, NamesWhoDoesNotComeToAgree) {
  for_each_member(GetParam(), check_agreement_with_a_missing_member, {.timeout_seconds = 0.2});
}

INSTANTIATE_TEST_SUITE_P(Members, ThreadCommunicator, ::testing::Values(1, 2, 3, 4, 7, 8));

TEST(ThreadCommunicators, AbortReleasesThoseWhoWait) {
  for_each_member(3, [](Communicator& communicator) {
    if (communicator.rank() == 2) {
      communicator.abort(Aborted("replica 2 failed"));
      return;
    }
    EXPECT_THROW(communicator.barrier(), Aborted);
  });
}

TEST(ThreadCommunicators, RefuseAnEmptyGroupAndANegativeTimeout) {
  EXPECT_THROW(static_cast<void>(make_thread_communicators(0)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(make_thread_communicators(2, {.timeout_seconds = -1})), InvalidArgument);
}

TEST(ThreadCommunicators, RefuseMoreMembersThanACellHasElements) {
  EXPECT_THAT(
      message_of(ErrorCode::kUnimplemented, [] { static_cast<void>(make_thread_communicators(4097)); }),
      ::testing::HasSubstr("at most 4096"));
}

TEST(ThreadCommunicators, RefuseThemBeforeAnyWorkerWaits) {
  // This worker's node has few members; another's has too many.
  NodeGroupOptions options;
  for (int rank = 0; rank < 1 + 5000; ++rank) options.workers.push_back({rank, rank == 0 ? 0 : 1, 0, "n", 1});
  options.exchange = [](std::string_view) -> std::vector<std::string> {
    throw Internal("nobody is to be waited for");
  };
  EXPECT_THAT(
      message_of(ErrorCode::kUnimplemented, [&] { static_cast<void>(make_node_communicators(options)); }),
      ::testing::HasSubstr("5000 members on node 1"));
}

}  // namespace
}  // namespace cohort::testing
