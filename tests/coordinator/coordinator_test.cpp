#include <cohort/coordinator/cluster_coordinator.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cohort/base/deadline.h>

#include "base/timeline_spans.h"
#include "counters.h"
#include "task_processes.h"
#include "temporary_folder.h"

namespace cohort {
namespace {

using test::counter;
using test::TaskProcesses;
using test::value;

int doubled(int n) { return 2 * n; }
std::int64_t add(const Variable& variable, std::int64_t n) {
  variable.assign_add(n);
  return value(variable);
}
void wait_for(const Variable& gate) {
  while (value(gate) == 0) continue;
}
int fail(int n) { throw InvalidArgument("closure failed: {}", n); }

template <class T>
T tripled(T n) {
  return 3 * n;
}
int keep_spans(bool wanted) {
  TimelineSpans::of_this_process().keep(wanted);
  return 0;
}
std::string names_of_spans(int most) {
  std::string names;
  for (const FinishedSpan& span : TimelineSpans::of_this_process().take(static_cast<std::size_t>(most)))
    names += span.name + ';';
  return names;
}

TEST(Coordinator, ShowsFunctionsAsSpansOfTheTimeline) {
  TaskProcesses tasks(1, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  coordinator.schedule<keep_spans>(true);
  coordinator.join();
  coordinator.schedule<doubled>(21);
  coordinator.schedule<tripled<int>>(21);
  coordinator.schedule<[](int n) { return n; }>(21);
  coordinator.join();
  const std::string names = coordinator.schedule<names_of_spans>(100).get();
  EXPECT_THAT(names, ::testing::MatchesRegex(".*doubled;.*tripled.*;lambda;"));
  EXPECT_THAT(names, ::testing::Not(::testing::HasSubstr("RegisteredFunction")));
  coordinator.join();
}

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
    EXPECT_EQ(value(a), 2000) << servers;
    EXPECT_EQ(value(b), 2000) << servers;
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

TEST(Coordinator, WhoHasSeenAFailedResultSchedulesNothingMore) {
  TaskProcesses tasks(2, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable gate = counter("gate");
  for (int i = 0; i < 300; ++i) {
    const auto waiting = coordinator.schedule<wait_for>(gate);
    // It takes the message of the failure, while this thread waits for the result.
    std::thread polling([&] { EXPECT_THROW(waiting.get(), Aborted); });
    const auto failed = coordinator.schedule<fail>(i);
    EXPECT_THROW(failed.get(), InvalidArgument);
    EXPECT_THROW(coordinator.schedule<doubled>(i), InvalidArgument) << i;
    polling.join();
    coordinator.join();
  }
}

TEST(Coordinator, CancelsWhatIsQueuedAndInterruptsWhatRuns) {
  TaskProcesses tasks(1, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable gate = counter("gate");
  coordinator.schedule<fail>(1);
  const auto waiting = coordinator.schedule<wait_for>(gate);
  std::vector<RemoteValue<int>> queued;
  try {
    for (int i = 0; i < 100; ++i) queued.push_back(coordinator.schedule<doubled>(i));
    coordinator.join();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("closure failed: 1"));
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
  EXPECT_EQ(value(a), 0);
  EXPECT_EQ(value(b), 0);
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
    firsts.reserve(20);
    for (int i = 0; i < 20; ++i)
      firsts.push_back(coordinator.schedule<[](std::vector<int>& mine) {
        EXPECT_EQ(mine.back(), 2);
        return mine.front();
      }>(numbers));
    for (const int first : coordinator.fetch(firsts)) seen.insert(first);
  }
  EXPECT_EQ(seen, (std::set<int>{10, 11}));
}

/// Knows how many of it there are in the process.
struct Counted {
  Counted() { ++count; }
  Counted(const Counted&) { ++count; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --count; }
  static inline int count = 0;
};

TEST(Coordinator, WorkersFreeTheElementsThatNobodyUsesAnyMore) {
  TaskProcesses tasks(1, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  const auto count = [&] { return coordinator.schedule<[] { return Counted::count; }>().get(); };
  const auto kept = coordinator.create_per_worker<[] { return Counted(); }>();
  std::vector<RemoteValue<int>> calls;
  for (int i = 0; i < 20; ++i) {
    const auto element =
        coordinator.create_per_worker<[](int number) { return std::pair(Counted(), number); }>(i);
    for (int call = 0; call < 20; ++call)
      calls.push_back(
          coordinator.schedule<[](std::pair<Counted, int>& mine) { return mine.second; }>(element));
  }
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i].get(), static_cast<int>(i / 20));
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (count() > 1 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_EQ(count(), 1) << "the one that still has a handle";
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
  EXPECT_EQ(value(a), 7);
}

TEST(Coordinator, WithoutAWorkerCallsEndAfterALimit) {
  TaskProcesses tasks(0, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy, {.worker_timeout_seconds = 0.1});
  const auto value = coordinator.schedule<doubled>(1);
  EXPECT_THROW(coordinator.join(), Unavailable);
  EXPECT_THROW(value.get(), Unavailable);
}

/// Starts a worker that has other functions than this program.
void start_other_binary(TaskProcesses& tasks, const ClusterTask& worker) {
  ASSERT_EQ(::setenv("OTHER_BINARY", "1", 1), 0);
  tasks.start(worker);
  ASSERT_EQ(::unsetenv("OTHER_BINARY"), 0);
}

TEST(Coordinator, AWorkerWithAnotherBinaryEndsWithAnErrorAndTheOthersGoOn) {
  TaskProcesses tasks(2, 1);
  tasks.kill({"worker", 1});
  start_other_binary(tasks, {"worker", 1});
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  EXPECT_EQ(coordinator.schedule<doubled>(21).get(), 42);
  EXPECT_EQ(WEXITSTATUS(tasks.wait({"worker", 1})), EXIT_FAILURE);
  EXPECT_EQ(coordinator.schedule<doubled>(4).get(), 8);
}

TEST(Coordinator, WhenNoWorkerHasItsBinaryTheyAreNamed) {
  TaskProcesses tasks(0, 1);
  start_other_binary(tasks, {"worker", 0});
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  coordinator.schedule<doubled>(21);
  EXPECT_THAT([&] { coordinator.join(); },
              ::testing::ThrowsMessage<InvalidArgument>(::testing::AllOf(
                  ::testing::HasSubstr("worker 0"), ::testing::HasSubstr("other binaries"))));
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

TEST(Coordinator, NothingIsAskedForOnceTheJobIsOver) {
  TaskProcesses tasks(1, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  auto scope = strategy.scope();
  const Variable a = counter("a");
  { const ClusterCoordinator coordinator(strategy); }
  EXPECT_THAT(
      [&] { const ClusterCoordinator second(strategy); },
      ::testing::ThrowsMessage<WrongContext>(::testing::HasSubstr("the job of this strategy is over")));
  EXPECT_THAT([&] { a.assign(std::int64_t{1}); },
              ::testing::ThrowsMessage<Unavailable>(::testing::HasSubstr("the job is over")));
}

/// A FIFO on which a function is held: it says that it runs, and goes on when it may.
class Gate {
 public:
  Gate() {
    for (const std::string& name : {begun(), release()}) EXPECT_EQ(::mkfifo(name.c_str(), 0600), 0);
  }
  [[nodiscard]] std::string name() const { return folder_.path().string(); }
  void wait_until_held() const { std::ifstream(begun()).get(); }
  void open() const { std::ofstream(release()) << 'x'; }

 private:
  [[nodiscard]] std::string begun() const { return name() + "/begun"; }
  [[nodiscard]] std::string release() const { return name() + "/release"; }

  testing::TemporaryFolder folder_;
};

int hold(const std::string& gate) {
  std::ofstream(gate + "/begun") << 'x';
  std::ifstream(gate + "/release").get();
  return 0;
}

/// Takes longer than it takes to schedule it.
int slowly(int n) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(300);
  while (std::chrono::steady_clock::now() < end) continue;
  return n;
}

/// Whether the calls end within 20 s, although others do not.
bool end_soon(const std::vector<RemoteValue<int>>& values) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(20));
  return std::ranges::all_of(values, [&](const auto& value) {
    while (!value.is_ready() && !deadline.expired()) std::this_thread::yield();
    return value.is_ready();
  });
}

/// The workers are thought to be quick.
void run_short_calls(const ClusterCoordinator& coordinator) {
  for (int i = 0; i < 2000; ++i) coordinator.schedule<doubled>(i);
  coordinator.join();
}

TEST(Coordinator, ACallGoesToAFreeWorkerNotBehindALongOne) {
  TaskProcesses tasks(2, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  for (int i = 0; i < 4; ++i) {  // whichever worker has the long call
    run_short_calls(coordinator);
    const Gate first;
    const Gate second;
    coordinator.schedule<hold>(first.name());
    first.wait_until_held();
    const std::vector between{coordinator.schedule<doubled>(1)};
    coordinator.schedule<hold>(second.name());
    EXPECT_TRUE(end_soon(between)) << i;
    second.wait_until_held();
    first.open();
    second.open();
    coordinator.join();
  }
}

TEST(Coordinator, WhatWasSentAheadDoesNotWaitForALongCall) {
  TaskProcesses tasks(2, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  for (int i = 0; i < 4; ++i) {
    run_short_calls(coordinator);
    const Gate gate;
    std::vector<RemoteValue<int>> values;
    values.reserve(2000);
    for (int j = 0; j < 1000; ++j) values.push_back(coordinator.schedule<doubled>(j));
    coordinator.schedule<hold>(gate.name());
    for (int j = 0; j < 1000; ++j) values.push_back(coordinator.schedule<doubled>(j));
    EXPECT_TRUE(end_soon(values)) << i;
    gate.wait_until_held();
    gate.open();
    coordinator.join();
  }
}

TEST(Coordinator, ACallWaitsForNoneThatWasScheduledLater) {
  TaskProcesses tasks(2, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  run_short_calls(coordinator);
  const Gate gate;
  coordinator.schedule<hold>(gate.name());
  std::vector<RemoteValue<int>> early;
  early.reserve(100);
  for (int j = 0; j < 100; ++j) early.push_back(coordinator.schedule<doubled>(j));
  gate.wait_until_held();
  // The other worker is never free.
  const Deadline deadline = Deadline::after(std::chrono::seconds(20));
  const auto is_ready = [](const RemoteValue<int>& value) { return value.is_ready(); };
  while (!std::ranges::all_of(early, is_ready) && !deadline.expired()) coordinator.schedule<slowly>(0);
  EXPECT_TRUE(std::ranges::all_of(early, is_ready));
  gate.open();
  coordinator.join();
}

TEST(Coordinator, AFullQueueWaits) {
  TaskProcesses tasks(1, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy, {.queue_limit = 3});
  std::vector<RemoteValue<int>> values;
  values.reserve(1000);
  for (int i = 0; i < 1000; ++i) values.push_back(coordinator.schedule<doubled>(i));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)].get(), 2 * i);
}

}  // namespace
}  // namespace cohort
