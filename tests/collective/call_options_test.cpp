// Options of single calls, between threads of one node and of several that are pretended.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "communicator_contracts.h"
#include "members.h"

namespace cohort::testing {
namespace {

class CallOptionsOfThreads : public ::testing::TestWithParam<int> {};

TEST_P(CallOptionsOfThreads, AllowAShorterDeadline) { for_each_member(GetParam(), check_shorter_deadline); }
TEST_P(CallOptionsOfThreads, AllowALongerDeadline) {
  for_each_member(GetParam(), check_longer_deadline, {.timeout_seconds = 0.05});
}
TEST_P(CallOptionsOfThreads, LetUrgentCallsOvertake) {
  for_each_member(GetParam(), [](Communicator& communicator) { check_urgent_calls(communicator); });
}
TEST_P(CallOptionsOfThreads, NeedTheSamePriorityEverywhere) {
  for_each_member(GetParam(), check_priority_mismatch);
  for_each_member(GetParam(), check_order_mismatch);
}
TEST_P(CallOptionsOfThreads, NameTheMissingMemberOfAnUrgentCall) {
  for_each_member(GetParam(), check_missing_in_urgent_call);
}

INSTANTIATE_TEST_SUITE_P(Members, CallOptionsOfThreads, ::testing::Values(1, 2, 3, 4, 7));

class CallOptionsBetweenNodes : public ::testing::TestWithParam<Layout> {};

TEST_P(CallOptionsBetweenNodes, AllowAShorterDeadline) {
  for_each_member(GetParam(), check_shorter_deadline);
}
TEST_P(CallOptionsBetweenNodes, AllowALongerDeadline) {
  for_each_member(GetParam(), check_longer_deadline, {.timeout_seconds = 0.05});
}
TEST_P(CallOptionsBetweenNodes, LetUrgentCallsOvertake) {
  for_each_member(GetParam(), [](Communicator& communicator) { check_urgent_calls(communicator); });
}
TEST_P(CallOptionsBetweenNodes, NeedTheSamePriorityEverywhere) {
  for_each_member(GetParam(), check_priority_mismatch);
  for_each_member(GetParam(), check_order_mismatch);
}
TEST_P(CallOptionsBetweenNodes, NameTheMissingMemberOfAnUrgentCall) {
  for_each_member(GetParam(), check_missing_in_urgent_call);
}

INSTANTIATE_TEST_SUITE_P(Layouts, CallOptionsBetweenNodes,
                         ::testing::Values(Layout{2, 1}, Layout{2, 2}, Layout{3, 1}, Layout{3, 2}),
                         [](const auto& instance) {
                           return fmt::format("{}x{}", instance.param.nodes, instance.param.members);
                         });

}  // namespace
}  // namespace cohort::testing
