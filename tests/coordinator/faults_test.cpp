// Workers and servers that are killed while functions run: every effect takes place once.
#include <cohort/coordinator/cluster_coordinator.h>

#include <sys/wait.h>
#include <unistd.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
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

constexpr int kParts = 10;

/// The number in the environment, or else `other`.
int number_of(const char* name, int other) {
  const char* const text = std::getenv(name);
  return text == nullptr ? other : std::atoi(text);
}
int calls_of_a_part() { return number_of("FAULT_CALLS", 2000) / kParts; }
std::chrono::seconds limit() { return std::chrono::seconds(number_of("FAULT_LIMIT_SECONDS", 10)); }

/// In each part, kills one of `tasks` when some of the part's calls have ended, and starts it again. The next
/// call must end within the limit.
template <class Schedule>
void disturb(TaskProcesses& processes, const std::vector<ClusterTask>& tasks, Schedule schedule) {
  std::mt19937 random(std::random_device{}());
  for (int part = 0; part < kParts; ++part) {
    std::vector<RemoteValue<void>> calls;
    while (std::ssize(calls) < calls_of_a_part()) calls.push_back(schedule(part));
    calls[random() % calls.size()].get();
    const ClusterTask& victim = tasks[random() % tasks.size()];
    const auto killed = std::chrono::steady_clock::now();
    processes.kill(victim);
    processes.start(victim);
    const auto next = std::ranges::find_if_not(calls, &RemoteValue<void>::is_ready);
    if (next != calls.end()) next->get();
    EXPECT_LT(std::chrono::steady_clock::now() - killed, limit()) << victim.type << " " << victim.id;
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
  victims.reserve(static_cast<std::size_t>(workers));
  for (int i = 0; i < workers; ++i) victims.push_back({"worker", i});
  disturb(processes, victims, [&](int part) {
    return part % 2 == 0 ? coordinator.schedule<add_one>(a) : coordinator.schedule<add_to_both>(a, b);
  });
  coordinator.join();
  EXPECT_EQ(value(a), kParts * calls_of_a_part());
  EXPECT_EQ(value(b), kParts / 2 * calls_of_a_part());
}
INSTANTIATE_TEST_SUITE_P(Workers, Faults, testing::Values(1, 2, 3, 4));

TEST(Faults, AServerThatIsKilledGoesOnFromItsMemory) {
  TaskProcesses processes(2, 2);
  const ParameterServerStrategy strategy(processes.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable a = counter("a");
  const Variable b = counter("b");
  disturb(processes, {{"ps", 0}, {"ps", 1}}, [&](int) { return coordinator.schedule<add_to_both>(a, b); });
  coordinator.join();
  EXPECT_EQ(value(a), kParts * calls_of_a_part());
  EXPECT_EQ(value(b), kParts * calls_of_a_part());
}

/// The process of worker 0, once it is there and runs calls.
pid_t find_worker_0(const ClusterCoordinator& coordinator, const PerWorker<int>& numbers) {
  while (true) {
    std::vector<RemoteValue<pid_t>> calls;
    calls.reserve(10);
    for (int i = 0; i < 10; ++i)
      calls.push_back(
          coordinator.schedule<[](int& number) { return number == 0 ? ::getpid() : 0; }>(numbers));
    for (const pid_t pid : coordinator.fetch(calls)) {
      if (pid != 0) return pid;
    }
  }
}

bool is_stopped(pid_t child) {
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOHANG | WNOWAIT);
  return info.si_pid == child;
}

TEST(Faults, AWorkerThatWasStoppedForLongChangesNothingMore) {
  TaskProcesses processes(2, 2);
  const ParameterServerStrategy strategy(processes.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable a = counter("a");
  const Variable b = counter("b");
  constexpr int kCalls = 200;
  const auto numbers =
      coordinator.create_per_worker<[](const InputContext& worker) { return worker.input_pipeline_id; }>();
  const pid_t worker_0 = find_worker_0(coordinator, numbers);
  int calls = 0;
  // It stops itself in the middle of a call: one that is stopped from here may have none, and then nobody
  // need take it for lost.
  while (!is_stopped(worker_0)) {
    for (int i = 0; i < kCalls; ++i) {
      coordinator.schedule<[](const Variable& first, const Variable& second, int& number) {
        first.assign_add(1);
        if (number == 0) ::raise(SIGSTOP);
        second.assign_add(1);
      }>(a, b, numbers);
    }
    calls += kCalls;
    coordinator.join();
  }
  EXPECT_EQ(value(a), calls);
  processes.signal({"worker", 0}, SIGCONT);
  EXPECT_NE(processes.wait({"worker", 0}), 0) << "it finds out that it counts as lost";
  for (int i = 0; i < kCalls; ++i) coordinator.schedule<add_to_both>(a, b);
  coordinator.join();
  EXPECT_EQ(value(a), calls + kCalls);
  EXPECT_EQ(value(b), calls + kCalls);
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

TEST(Faults, AServerThatWasStoppedForLongTakesNoValueThatHasChangedMeanwhile) {
  TaskProcesses processes(0, 1);
  const ParameterServerStrategy strategy(processes.chief());
  auto scope = strategy.scope();
  const Variable variable({.shape = {1 << 16}, .name = "v"});
  const Tensor value = Tensor::full(variable.shape(), DType::kFloat32, 1);
  variable.assign(value);
  processes.signal({"ps", 0}, SIGSTOP);
  value.fill(2);
  // The server is to read the value in the memory of this process, which does not wait for that for ever.
  EXPECT_THROW(variable.assign(value), Unavailable);
  value.fill(3);
  processes.signal({"ps", 0}, SIGCONT);
  EXPECT_THAT(variable.read().span<float>(), testing::Each(1));
}

TEST(Faults, AServerThatWasStartedAgainWhileAllAreIdleHearsThatTheJobIsOver) {
  TaskProcesses processes(1, 2);
  {
    const ParameterServerStrategy strategy(processes.chief());
    const ClusterCoordinator coordinator(strategy);
    auto scope = strategy.scope();
    const Variable a = counter("a");
    coordinator.schedule<add_one>(a);
    coordinator.join();
    processes.kill({"ps", 0});
    processes.start({"ps", 0});
  }
  EXPECT_EQ(processes.wait({"ps", 0}), 0);
  EXPECT_EQ(processes.wait({"ps", 1}), 0);
  EXPECT_EQ(processes.wait({"worker", 0}), 0);
}

TEST(Faults, WhenTheCoordinatorEndsSoDoWorkersAndServers) {
  TaskProcesses processes(2, 1);
  {
    const ParameterServerStrategy strategy(processes.chief());
    const ClusterCoordinator coordinator(strategy);
    // Both workers are there.
    for (std::set<pid_t> seen; seen.size() < 2;) {
      std::vector<RemoteValue<pid_t>> calls;
      calls.reserve(10);
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
