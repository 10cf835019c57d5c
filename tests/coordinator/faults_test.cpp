// Workers and servers that are killed while functions run: every effect takes place once.
#include <cohort/coordinator/cluster_coordinator.h>

#include <signal.h>
#include <unistd.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "counters.h"
#include "task_processes.h"

namespace cohort {
namespace {

using test::counter;
using test::TaskProcesses;
using test::value;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

void add_one(const Variable& variable) { variable.assign_add(1); }

void add_to_both(const Variable& a, const Variable& b) {
  a.assign_add(1);
  b.assign_add(1);
}

/// Kills one of `tasks` and starts it again, each time when so many calls of a part have ended.
template <class Schedule>
void disturb(TaskProcesses& processes, const std::vector<ClusterTask>& tasks, int parts, Schedule schedule) {
  std::mt19937 random(std::random_device{}());
  for (int part = 0; part < parts; ++part) {
    const auto some = schedule(part);
    const ClusterTask& victim = tasks[random() % tasks.size()];
    some[random() % some.size()].get();
    processes.kill(victim);
    processes.start(victim);
  }
}

constexpr int kCallsOfAPart = 200;

class Faults : public testing::TestWithParam<int> {};

TEST_P(Faults, EffectsTakePlaceOnceThoughWorkersAreKilled) {
  const int workers = GetParam();
  TaskProcesses processes(workers, 2);
  const ParameterServerStrategy strategy(processes.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable a = counter("a");
  const Variable b = counter("b");
  std::vector<ClusterTask> victims;
  for (int i = 0; i < workers; ++i) victims.push_back({"worker", i});
  disturb(processes, victims, 10, [&](int part) {
    std::vector<RemoteValue<void>> calls;
    for (int i = 0; i < kCallsOfAPart; ++i)
      calls.push_back(part % 2 == 0 ? coordinator.schedule<add_one>(a)
                                    : coordinator.schedule<add_to_both>(a, b));
    return calls;
  });
  coordinator.join();
  EXPECT_EQ(value(a), 10 * kCallsOfAPart);
  EXPECT_EQ(value(b), 5 * kCallsOfAPart);
}
INSTANTIATE_TEST_SUITE_P(Workers, Faults, testing::Values(1, 2, 4));

TEST(Faults, AServerThatIsKilledGoesOnFromItsMemory) {
  TaskProcesses processes(2, 2);
  const ParameterServerStrategy strategy(processes.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable a = counter("a");
  const Variable b = counter("b");
  disturb(processes, {{"ps", 0}, {"ps", 1}}, 10, [&](int) {
    std::vector<RemoteValue<void>> calls;
    for (int i = 0; i < kCallsOfAPart; ++i) calls.push_back(coordinator.schedule<add_to_both>(a, b));
    return calls;
  });
  coordinator.join();
  EXPECT_EQ(value(a), 10 * kCallsOfAPart);
  EXPECT_EQ(value(b), 10 * kCallsOfAPart);
}

TEST(Faults, AWorkerThatWasStoppedForLongChangesNothingMore) {
  TaskProcesses processes(2, 2);
  const ParameterServerStrategy strategy(processes.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable a = counter("a");
  const Variable b = counter("b");
  const auto schedule = [&] {
    std::vector<RemoteValue<void>> calls;
    for (int i = 0; i < kCallsOfAPart; ++i) calls.push_back(coordinator.schedule<add_to_both>(a, b));
    return calls;
  };
  const auto calls = schedule();
  calls[kCallsOfAPart / 10].get();
  processes.signal({"worker", 0}, SIGSTOP);
  coordinator.join();
  EXPECT_EQ(value(a), kCallsOfAPart);
  processes.signal({"worker", 0}, SIGCONT);
  EXPECT_NE(processes.wait({"worker", 0}), 0) << "it finds out that it counts as lost";
  static_cast<void>(schedule());
  coordinator.join();
  EXPECT_EQ(value(a), 2 * kCallsOfAPart);
  EXPECT_EQ(value(b), 2 * kCallsOfAPart);
}

TEST(Faults, AServerThatComesBackWithoutItsMemoryIsNamedWithItsVariables) {
  TaskProcesses processes(1, 1);
  const ParameterServerStrategy strategy(processes.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable a = counter("first");
  const Variable b = counter("second");
  coordinator.schedule<add_to_both>(a, b);
  coordinator.join();
  processes.kill({"ps", 0});
  ASSERT_EQ(::ftruncate(processes.place({"ps", 0}).memory, 0), 0);
  processes.start({"ps", 0});
  EXPECT_THAT([&] { a.assign(std::int64_t{1}); },
              ThrowsMessage<Unavailable>(
                  AllOf(HasSubstr("ps 0"), HasSubstr("first, second"), HasSubstr("checkpoint"))));
}

TEST(Faults, AServerThatDoesNotComeBackIsNamedWithItsVariables) {
  TaskProcesses processes(1, 1);
  const ParameterServerStrategy strategy(processes.chief());
  auto scope = strategy.scope();
  const Variable a = counter("first");
  processes.kill({"ps", 0});
  EXPECT_THAT(
      [&] { a.assign(std::int64_t{1}); },
      ThrowsMessage<Unavailable>(AllOf(HasSubstr("ps 0"), HasSubstr("first"), HasSubstr("checkpoint"))));
}

TEST(Faults, WhenTheCoordinatorEndsSoDoWorkersAndServers) {
  TaskProcesses processes(2, 1);
  {
    const ParameterServerStrategy strategy(processes.chief());
    const ClusterCoordinator coordinator(strategy);
    // Both workers are there.
    for (std::set<pid_t> seen; seen.size() < 2;) {
      std::vector<RemoteValue<pid_t>> calls;
      for (int i = 0; i < 10; ++i) calls.push_back(coordinator.schedule<[] { return ::getpid(); }>());
      for (const pid_t pid : coordinator.fetch(calls)) seen.insert(pid);
    }
  }
  EXPECT_EQ(processes.wait({"ps", 0}), 0);
  EXPECT_EQ(processes.wait({"worker", 0}), 0);
  EXPECT_EQ(processes.wait({"worker", 1}), 0);
}

}  // namespace
}  // namespace cohort
