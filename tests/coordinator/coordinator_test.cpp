#include <cohort/coordinator/cluster_coordinator.h>

#include <gtest/gtest.h>

#include "task_processes.h"

namespace cohort {
namespace {

using test::TaskProcesses;

int doubled(int n) { return 2 * n; }
std::int64_t add(const Variable& variable, std::int64_t n) {
  variable.assign_add(n);
  return variable.read().item<std::int64_t>();
}
void fail(int n) { throw InvalidArgument("closure failed: {}", n); }

Variable counter(const std::string& name) { return Variable({.dtype = DType::kInt64, .name = name}); }

TEST(Coordinator, RunsAFunctionOnAWorker) {
  TaskProcesses tasks(1, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  EXPECT_EQ(coordinator.schedule<doubled>(21).get(), 42);
  coordinator.join();
  EXPECT_TRUE(coordinator.done());
}

TEST(Coordinator, FunctionsChangeVariablesOnServers) {
  for (int servers = 1; servers <= 3; ++servers) {
    TaskProcesses tasks(2, servers);
    const ParameterServerStrategy strategy(tasks.chief());
    const ClusterCoordinator coordinator(strategy);
    auto scope = strategy.scope();
    const Variable a = counter("a");
    const Variable b = counter("b");
    for (int i = 0; i < 1000; ++i) {
      coordinator.schedule<add>(a, 1);
      coordinator.schedule<[](const Variable& x, const Variable& y) {
        x.assign_add(1);
        y.assign_add(2);
      }>(a, b);
    }
    coordinator.join();
    EXPECT_EQ(a.read().item<std::int64_t>(), 2000) << servers;
    EXPECT_EQ(b.read().item<std::int64_t>(), 2000) << servers;
  }
}

TEST(Coordinator, ThrowsTheFirstErrorOnceAndGoesOn) {
  TaskProcesses tasks(2, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  const auto failed = coordinator.schedule<fail>(3);
  EXPECT_THROW(coordinator.join(), InvalidArgument);
  coordinator.join();
  EXPECT_TRUE(coordinator.done());
  EXPECT_THROW(failed.get(), InvalidArgument);
  EXPECT_EQ(coordinator.schedule<doubled>(4).get(), 8);
}

}  // namespace
}  // namespace cohort
