// Options of single calls, between threads of one node and of several that are pretended.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cohort/base/deadline.h>

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

// ---- what a thread does while it waits

std::atomic<int> times_called{0};
void count_a_call() { times_called.fetch_add(1); }

/// Whether the others call what they are to call while they wait for this member.
bool others_call() {
  const Deadline deadline = Deadline::after(std::chrono::seconds(20));
  while (times_called.load() < 100 && !deadline.expired()) std::this_thread::yield();
  return times_called.load() >= 100;
}

void check_while_waiting(Communicator& communicator) {
  const std::unique_ptr<Communicator> group = communicator.split(0);
  for (Communicator* const each : {&communicator, group.get()}) {
    for (const bool is_async : {false, true}) {
      times_called = 0;
      communicator.barrier();
      if (each->rank() == 0) {
        EXPECT_TRUE(others_call());
      }
      if (is_async)
        each->barrier_async().wait();
      else
        each->barrier();
    }
  }
}

TEST(WhileWaiting, AThreadCallsWhatTheOptionsSay) {
  for_each_member(2, check_while_waiting, {.while_waiting = &count_a_call});
  for_each_member(3, check_while_waiting, {.while_waiting = &count_a_call});
}

}  // namespace
}  // namespace cohort::testing
