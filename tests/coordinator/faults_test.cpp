// Workers and servers that are killed while functions run: every effect takes place once.
#include <cohort/coordinator/cluster_coordinator.h>

#include <signal.h>
#include <gtest/gtest.h>

#include <random>

#include "task_processes.h"

namespace cohort {
namespace {

using test::TaskProcesses;

void add_one(const Variable& variable) { variable.assign_add(1); }

void add_to_both(const Variable& a, const Variable& b) {
  a.assign_add(1);
  b.assign_add(1);
}

Variable counter(const std::string& name) { return Variable({.dtype = DType::kInt64, .name = name}); }
std::int64_t value(const Variable& variable) { return variable.read().item<std::int64_t>(); }

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
    for (int i = 0; i < 100; ++i)
      calls.push_back(part % 2 == 0 ? coordinator.schedule<add_one>(a)
                                    : coordinator.schedule<add_to_both>(a, b));
    return calls;
  });
  coordinator.join();
  EXPECT_EQ(value(a), 1000);
  EXPECT_EQ(value(b), 500);
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
    for (int i = 0; i < 100; ++i) calls.push_back(coordinator.schedule<add_to_both>(a, b));
    return calls;
  });
  coordinator.join();
  EXPECT_EQ(value(a), 1000);
  EXPECT_EQ(value(b), 1000);
}

}  // namespace
}  // namespace cohort
