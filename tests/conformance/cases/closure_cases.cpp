// Functions that the coordinator has workers run, which the original calls closures; also while a server is
// lost.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <thread>

#include <fmt/format.h>

#include <cohort/coordinator/serve.h>
#include <cohort/input/dataset.h>

#include "counters.h"
#include "tasks.h"
#include "temporary_folder.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using test::counter;
using test::value;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

class ClosureCase : public TaskCase {};
COHORT_INSTANTIATE_TASK_CASES(ClosureCase);

/// Counts `label`. The worker that is the first to run it is killed when it has done so.
void count_the_second_time(const Variable& counts, const std::string& folder, int label) {
  counts.scatter_add({Tensor::from(std::vector<std::int64_t>{1}), Tensor::from({label}), counts.shape()});
  const std::string begun = fmt::format("{}/{}", folder, label);
  if (::open(begun.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0) ::raise(SIGKILL);
}

TEST_P(ClosureCase, Case127_OneThatIsPutBackIsStillProcessedOnce) {
  constexpr int kLabels = 5;
  auto scope = strategy().scope();
  const Variable counts({.shape = {kLabels}, .dtype = DType::kInt64, .name = "counts"});
  const TemporaryFolder folder;
  for (int label = 0; label < kLabels; ++label)
    coordinator().schedule<count_the_second_time>(counts, folder.path(""), label);
  for (int label = 0; label < kLabels; ++label) processes().start(processes().wait_for_any());
  const auto wait_twice = [] {
    coordinator().join();
    coordinator().join();
  };
  std::thread other(wait_twice);
  wait_twice();
  other.join();
  EXPECT_TRUE(coordinator().done());
  EXPECT_THAT(counts.read().span<std::int64_t>(), Each(1));
}

void fail_when(const Variable& gate) {
  while (value(gate) == 0) continue;
  throw InvalidArgument("the closure's own error");
}
void count_when(const Variable& gate, const Variable& sum) {
  while (value(gate) == 0) continue;
  sum.assign_add(std::int64_t{1});
}

/// A function that fails, with others that run or are queued then and could not end.
class ClosureErrorCase : public TaskCase {
 protected:
  void SetUp() override {
    TaskCase::SetUp();
    auto scope = strategy().scope();
    const Variable gate = counter("gate");
    sum_.emplace(counter("sum"));
    const Variable closed = counter("closed");
    failed_.emplace(coordinator().schedule<fail_when>(gate));
    for (int i = 0; i < 3 * workers(); ++i)
      others_.push_back(coordinator().schedule<count_when>(closed, *sum_));
    gate.assign(std::int64_t{1});
  }

  void expect_that_it_was_raised_once() const {
    coordinator().join();
    EXPECT_TRUE(coordinator().done());
    // That of each result can be looked at as often as one likes.
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { failed_->get(); }), own_error());
      for (const auto& cancelled : others_)
        EXPECT_THAT(message_of(ErrorCode::kAborted, [&] { cancelled.get(); }),
                    HasSubstr("schedule it again"));
    }
    EXPECT_EQ(value(*sum_), 0);
    auto scope = strategy().scope();
    const Variable open = counter("open");
    open.assign(std::int64_t{1});
    coordinator().schedule<count_when>(open, *sum_);
    coordinator().join();
    EXPECT_EQ(value(*sum_), 1);
  }

  [[nodiscard]] static auto own_error() -> ::testing::Matcher<std::string> {
    return HasSubstr("the closure's own error");
  }

  std::optional<Variable> sum_;
  std::optional<RemoteValue<void>> failed_;
  std::vector<RemoteValue<void>> others_;
};
COHORT_INSTANTIATE_TASK_CASES(ClosureErrorCase);

TEST_P(ClosureErrorCase, Case128_JoinRaisesItOnce) {
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [] { coordinator().join(); }), own_error());
  expect_that_it_was_raised_once();
}

TEST_P(ClosureErrorCase, Case128_ScheduleRaisesItOnce) {
  EXPECT_THROW(failed_->get(), InvalidArgument);
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { coordinator().schedule<fail_when>(*sum_); }),
              own_error());
  expect_that_it_was_raised_once();
}

TEST_P(ClosureErrorCase, Case128_DoneRaisesItOnce) {
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                         [] {
                           while (!coordinator().done()) continue;
                         }),
              own_error());
  expect_that_it_was_raised_once();
}

Dataset<Tensor> shard_of_ten(const InputContext& worker) {
  return Dataset<Tensor>::range(10).shard({worker.num_input_pipelines, worker.input_pipeline_id});
}

/// The number of the worker and the sum of its shard.
std::vector<std::int64_t> sum_of_shard(const InputContext& worker, const Dataset<Tensor>& shard) {
  std::int64_t sum = 0;
  for (const Tensor& element : shard) sum += element.item<std::int64_t>();
  return {worker.input_pipeline_id, sum};
}

/// What each worker's shard sums up to. Any worker may run a call, so they are made until all have run one.
std::vector<std::int64_t> sums_of_shards(const ClusterCoordinator& coordinator, int workers) {
  const auto shards = coordinator.create_per_worker<shard_of_ten>();
  std::map<std::int64_t, std::int64_t> sums;
  while (std::ssize(sums) < workers) {
    std::vector<RemoteValue<std::vector<std::int64_t>>> calls;
    while (std::ssize(calls) < 4 * workers) calls.push_back(coordinator.schedule<sum_of_shard>(shards));
    for (const auto& sum : coordinator.fetch(calls)) {
      const auto [known, is_new] = sums.emplace(sum[0], sum[1]);
      EXPECT_EQ(known->second, sum[1]) << "worker " << sum[0] << " reads its shard from the beginning";
    }
  }
  std::vector<std::int64_t> result;
  result.reserve(sums.size());
  for (const auto& [worker, sum] : sums) result.push_back(sum);
  return result;
}

TEST_P(ClosureCase, Case130_WorkersReadTheirOwnShards) {
  const std::vector<std::int64_t> expected = workers() == 1   ? std::vector<std::int64_t>{45}
                                             : workers() == 2 ? std::vector<std::int64_t>{20, 25}
                                                              : std::vector<std::int64_t>{18, 12, 15};
  EXPECT_EQ(sums_of_shards(coordinator(), workers()), expected);
}

TEST(ClosureCase, Case130_FiveWorkersReadTheirOwnShards) {
  const CoordinatedTasks tasks({.workers = 5, .servers = 1});
  EXPECT_EQ(sums_of_shards(tasks.coordinator, 5), (std::vector<std::int64_t>{5, 7, 9, 11, 13}));
}

std::int64_t value_of(const Variable& variable) { return value(variable); }

TEST_P(ClosureCase, Case131_VariablesOfTheCoordinatorAloneAreNoArguments) {
  const Variable local = counter("of the coordinator alone");
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { coordinator().schedule<value_of>(local); }),
              AllOf(HasSubstr("'of the coordinator alone'"), HasSubstr("parameter server")));
  EXPECT_TRUE(coordinator().done()) << "nothing was scheduled";
}

Variable counter_of_worker() { return counter("of the worker"); }
std::int64_t count_here(const Variable& counter) {
  counter.assign_add(std::int64_t{1});
  return value(counter);
}

TEST_P(ClosureCase, Case131_VariablesThatADatasetFunctionMakesAreTheWorkersOwn) {
  const auto counters = coordinator().create_per_worker<counter_of_worker>();
  // Each worker counts its own calls, up from 1.
  constexpr int kCalls = 20;
  std::vector<RemoteValue<std::int64_t>> calls;
  while (std::ssize(calls) < kCalls) calls.push_back(coordinator().schedule<count_here>(counters));
  std::map<std::int64_t, int> workers_that_came_to;
  for (const std::int64_t count : coordinator().fetch(calls)) ++workers_that_came_to[count];
  EXPECT_LE(workers_that_came_to[1], workers());
  int before = workers();
  int all = 0;
  for (const auto& [count, reached] : workers_that_came_to) {
    EXPECT_LE(reached, before) << "who counts to " << count << " has counted to " << count - 1;
    before = reached;
    all += reached;
  }
  EXPECT_EQ(all, kCalls);
}

TEST(ClosureCase, Case131_ADatasetFunctionMakesNoVariableOfTheStrategy) {
  const test::TaskProcesses processes(0, 1);
  // A worker whose functions run in the scope of its strategy.
  std::thread worker([&] {
    const ParameterServerStrategy strategy(processes.place({"worker", 0}));
    auto scope = strategy.scope();
    serve(strategy);
  });
  {
    const ParameterServerStrategy strategy(processes.chief());
    const ClusterCoordinator coordinator(strategy);
    const auto counters = coordinator.create_per_worker<counter_of_worker>();
    const auto count = coordinator.schedule<count_here>(counters);
    EXPECT_THAT(message_of(ErrorCode::kWrongContext, [&] { count.get(); }),
                AllOf(HasSubstr("'of the worker'"), HasSubstr("arguments")));
  }
  worker.join();
}

// A parameter server that is killed while workers use it.

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
