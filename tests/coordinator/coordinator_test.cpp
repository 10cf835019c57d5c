#include <cohort/coordinator/cluster_coordinator.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "task_processes.h"

namespace cohort {
namespace {

using test::TaskProcesses;

int doubled(int n) { return 2 * n; }
std::int64_t add(const Variable& variable, std::int64_t n) {
  variable.assign_add(n);
  return variable.read().item<std::int64_t>();
}
int fail(int n) { throw InvalidArgument("closure failed: {}", n); }

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

TEST(Coordinator, CancelsWhatIsQueuedAndInterruptsWhatRuns) {
  TaskProcesses tasks(1, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable gate = counter("gate");
  coordinator.schedule<fail>(1);
  const auto waiting = coordinator.schedule<[](const Variable& variable) {
    while (variable.read().item<std::int64_t>() == 0) {
    }
  }>(gate);
  std::vector<RemoteValue<int>> queued;
  try {
    for (int i = 0; i < 100; ++i) queued.push_back(coordinator.schedule<doubled>(i));
    coordinator.join();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("closure failed: 1"));
  }
  EXPECT_TRUE(coordinator.done());
  EXPECT_THROW(waiting.get(), Aborted);
  for (const auto& value : queued) EXPECT_THROW(value.get(), Aborted);
  EXPECT_EQ(coordinator.schedule<doubled>(4).get(), 8);
}

TEST(Coordinator, WhatFailsChangesNothing) {
  TaskProcesses tasks(1, 2);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable a = counter("a");
  const Variable b = counter("b");
  coordinator.schedule<[](const Variable& x, const Variable& y) {
    x.assign_add(1);
    y.assign_add(1);
    throw InvalidArgument("half way");
  }>(a, b);
  EXPECT_THROW(coordinator.join(), InvalidArgument);
  EXPECT_EQ(a.read().item<std::int64_t>(), 0);
  EXPECT_EQ(b.read().item<std::int64_t>(), 0);
}

TEST(Coordinator, EveryWorkerHasItsElement) {
  TaskProcesses tasks(2, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  const auto numbers = coordinator.create_per_worker<[](const InputContext& worker, int first) {
    return std::vector<int>{first + worker.input_pipeline_id, worker.num_input_pipelines};
  }>(10);
  std::set<int> seen;
  while (seen.size() < 2) {  // either worker may be first to run all of them
    std::vector<RemoteValue<int>> firsts;
    for (int i = 0; i < 20; ++i)
      firsts.push_back(coordinator.schedule<[](std::vector<int>& mine) {
        EXPECT_EQ(mine.back(), 2);
        return mine.front();
      }>(numbers));
    for (const int first : coordinator.fetch(firsts)) seen.insert(first);
  }
  EXPECT_EQ(seen, (std::set<int>{10, 11}));
}

TEST(Coordinator, FetchesWhatIsInAStructure) {
  TaskProcesses tasks(1, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  const auto value = [&](int n) { return coordinator.schedule<doubled>(n); };
  const std::map<std::string, std::vector<RemoteValue<int>>> lists{{"a", {value(1), value(2)}}, {"b", {}}};
  const auto [numbers, by_name, text] =
      coordinator.fetch(std::tuple(std::tuple(value(3), 9), lists, std::string("s")));
  EXPECT_EQ(numbers, std::tuple(6, 9));
  EXPECT_EQ(by_name, (std::map<std::string, std::vector<int>>{{"a", {2, 4}}, {"b", {}}}));
  EXPECT_EQ(text, "s");
  const std::vector<RemoteValue<int>> failing{value(1), coordinator.schedule<fail>(3)};
  EXPECT_THROW(static_cast<void>(coordinator.fetch(failing)), InvalidArgument);
  EXPECT_THROW(coordinator.join(), InvalidArgument);
}

TEST(Coordinator, ReadsItsOwnWrites) {
  TaskProcesses tasks(1, 2);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable a = counter("a");
  const Variable b = counter("b");
  const auto sum = coordinator.schedule<[](const Variable& x, const Variable& y) {
    x.assign(std::int64_t{5});
    y.assign_add(std::int64_t{2});
    x.assign_add(y.read());
    return x.read().item<std::int64_t>();
  }>(a, b);
  EXPECT_EQ(sum.get(), 7);
  EXPECT_EQ(a.read().item<std::int64_t>(), 7);
}

TEST(Coordinator, WithoutAWorkerCallsEndAfterALimit) {
  TaskProcesses tasks(0, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy, {.worker_timeout_seconds = 0.1});
  const auto value = coordinator.schedule<doubled>(1);
  EXPECT_THROW(coordinator.join(), Unavailable);
  EXPECT_THROW(value.get(), Unavailable);
}

TEST(Coordinator, OneForEachStrategyAndOnlyAtTheChief) {
  TaskProcesses tasks(1, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  EXPECT_THROW(ClusterCoordinator(strategy, {.queue_limit = 0}), InvalidArgument);
  const ClusterCoordinator first(strategy);
  const ClusterCoordinator second(strategy);
  const auto value = first.schedule<doubled>(1);
  second.join();
  EXPECT_TRUE(value.is_ready());
}

TEST(Coordinator, AFullQueueWaits) {
  TaskProcesses tasks(1, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy, {.queue_limit = 3});
  std::vector<RemoteValue<int>> values;
  for (int i = 0; i < 1000; ++i) values.push_back(coordinator.schedule<doubled>(i));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)].get(), 2 * i);
}

}  // namespace
}  // namespace cohort
