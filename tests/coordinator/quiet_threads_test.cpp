// Whatever a program uses, its signal handlers run where its functions do.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/preemption_checkpoint_handler.h>
#include <cohort/collective/thread_communicator.h>
#include <cohort/coordinator/cluster_coordinator.h>
#include <cohort/input/dataset.h>

#include "../rpc/tasks.h"
#include "../strategy/strategies.h"
#include "task_processes.h"
#include "temporary_folder.h"

namespace cohort {
namespace {

/// The threads of this process but the calling one, and the signals of the process that one of them takes.
struct OtherThreads {
  int count = 0;
  std::set<int> taken = {};
};

OtherThreads other_threads() {
  // Those of a thread's own faults, those that nobody blocks, and two that the C library keeps for itself.
  const std::set<int> open{SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP, SIGKILL, SIGSTOP, 32, 33};
  OtherThreads others;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::gettid())) continue;
    std::ifstream status(task.path() / "status");
    std::string word;
    while (word != "SigBlk:" && status >> word) continue;
    std::uint64_t blocked = 0;
    if (!(status >> std::hex >> blocked)) continue;  // it has just ended
    ++others.count;
    for (int signal = 1; signal <= 64; ++signal)
      if ((blocked >> (signal - 1) & 1) == 0 && !open.contains(signal)) others.taken.insert(signal);
  }
  return others;
}

/// Called on a worker.
std::vector<std::int64_t> count_and_taken(int least) {
  const OtherThreads others = other_threads();
  if (others.count < least) throw Aborted("a worker has {} other threads only", others.count);
  return {others.taken.begin(), others.taken.end()};
}

TEST(QuietThreads, TakeNoSignalOfTheProcess) {
  test::TaskProcesses tasks(1, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  // Its listener, and the thread by which it shows that it lives.
  EXPECT_THAT(coordinator.schedule<count_and_taken>(2).get(), ::testing::IsEmpty());

  const auto members = make_thread_communicators(2);
  std::vector<Work> works;
  works.reserve(members.size());
  for (const auto& member : members)
    works.push_back(member->all_reduce_async(Tensor::full({1000}, DType::kFloat32, 1), ReduceOp::kSum));
  for (Work& work : works) work.wait();

  const OtherThreads others = other_threads();
  // The coordinator's and its connections', and that of asynchronous calls.
  EXPECT_GE(others.count, 2 + 1);
  EXPECT_THAT(others.taken, ::testing::IsEmpty());
}

/// Whether a program that is started here could be ended by a signal.
bool takes_signals() {
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, SIGTERM) == 0 && sigismember(&blocked, SIGPIPE) == 0;
}

// Else a program that such a function starts could not be ended.
TEST(ProgramThreads, TakeSignalsAsTheProgramsOwnDo) {
  std::atomic<int> quiet{0};
  const auto count = [&quiet] { quiet += takes_signals() ? 0 : 1; };

  for (const Tensor& number : Dataset<Tensor>::range(100)
                                  .map(
                                      [&](const Tensor& each) {
                                        count();
                                        return each;
                                      },
                                      {.parallelism = 2})
                                  .prefetch(2))
    static_cast<void>(number);
  EXPECT_EQ(quiet, 0) << "functions of a dataset";

  testing::mirrored(2).run(count);
  EXPECT_EQ(quiet, 0) << "steps of a replica";

  const rpc::Tasks pair;
  rpc::Server server(pair.serving());
  server.register_method("count", [&](int number) {
    count();
    return number;
  });
  server.start();
  EXPECT_EQ(pair.client().call<int(int)>("count", 3).get(), 3);
  EXPECT_EQ(quiet, 0) << "methods";

  std::atomic<bool> is_asked{false};
  {
    const testing::TemporaryFolder folder;
    std::int64_t steps = 0;
    const MirroredStrategy replicas = testing::mirrored(1);
    Checkpoint checkpoint(replicas);
    checkpoint.add("steps", steps);
    const auto watcher = [&] {
      count();
      is_asked = true;
      is_asked.notify_all();
      return false;
    };
    const PreemptionCheckpointHandler handler(
        checkpoint, folder.path("checkpoints"),
        {.signals = {}, .termination_watcher_fn = watcher, .end_time = std::nullopt});
    is_asked.wait(false);
  }
  EXPECT_EQ(quiet, 0) << "the function that is asked whether the machine ends";
}

}  // namespace
}  // namespace cohort
