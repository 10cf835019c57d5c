// A parameter server that is killed while workers use it.
#include <unistd.h>

#include "counters.h"
#include "tasks.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using test::counter;
using test::value;
using ::testing::AllOf;
using ::testing::HasSubstr;

void add_one(const Variable& variable) { variable.assign_add(std::int64_t{1}); }

/// Calls of `add_one`, of which one has ended.
std::vector<RemoteValue<void>> begun_calls(const ClusterCoordinator& coordinator, const Variable& sum,
                                           int count) {
  std::vector<RemoteValue<void>> calls;
  while (std::ssize(calls) < count) calls.push_back(coordinator.schedule<add_one>(sum));
  calls.front().get();
  return calls;
}

/// Has a cluster in which workers take part add to `sum`, on ps 0, and kills this one.
void kill_first_server(CoordinatedTasks& tasks, const Variable& sum) {
  static_cast<void>(begun_calls(tasks.coordinator, sum, 10));
  tasks.coordinator.join();
  tasks.processes.kill({"ps", 0});
}

[[nodiscard]] auto names_what_is_lost() { return AllOf(HasSubstr("ps 0"), HasSubstr("sum")); }

class ServerLossCase : public TaskCase {};
COHORT_INSTANTIATE_TASK_CASES(ServerLossCase);

TEST_P(ServerLossCase, Case133_AServerThatIsStartedAgainGoesOn) {
  constexpr int kCalls = 200;
  auto scope = strategy().scope();
  for (int server = 0; server < servers(); ++server) {
    const Variable sum = counter("sum");
    const auto calls = begun_calls(coordinator(), sum, kCalls);
    const ClusterTask lost{"ps", server};
    processes().kill(lost);
    processes().start(lost);
    coordinator().join();
    EXPECT_EQ(value(sum), kCalls) << "each call took effect once";
  }
}

TEST_P(ServerLossCase, Case133_AServerThatHasLostItsMemoryRaisesUnavailable) {
  CoordinatedTasks tasks(GetParam());
  auto scope = tasks.strategy.scope();
  const Variable sum = counter("sum");
  kill_first_server(tasks, sum);
  const ClusterTask lost{"ps", 0};
  ASSERT_EQ(::ftruncate(tasks.processes.place(lost).memory, 0), 0);
  tasks.processes.start(lost);
  tasks.coordinator.schedule<add_one>(sum);
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { tasks.coordinator.join(); }), names_what_is_lost());
  const auto lost_call = tasks.coordinator.schedule<add_one>(sum);
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { lost_call.get(); }), names_what_is_lost());
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { tasks.coordinator.schedule<add_one>(sum); }),
              names_what_is_lost());
}

TEST(ServerLossCase, Case133_AServerThatDoesNotComeBackRaisesUnavailable) {
  CoordinatedTasks tasks({.workers = 1, .servers = 1});
  auto scope = tasks.strategy.scope();
  const Variable sum = counter("sum");
  kill_first_server(tasks, sum);
  tasks.coordinator.schedule<add_one>(sum);
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { tasks.coordinator.join(); }), names_what_is_lost());
}

}  // namespace
}  // namespace cohort::testing
