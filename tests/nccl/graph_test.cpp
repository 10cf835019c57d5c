// Steps with collectives in them, captured by all members and launched by all.
#include <cohort/cuda/graph.h>

#include <atomic>
#include <barrier>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include <cohort/collective/communication_scope.h>
#include <cohort/device/tensor.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/train/optimizers/momentum.h>

#include "../cuda/calls_counted.h"
#include "cuda/capture.h"
#include "gpu_members.h"
#include "members.h"
#include "nccl_faults.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr CommunicationOptions kPatient{.timeout_seconds = 60};
constexpr CommunicationOptions kImpatient{.timeout_seconds = 0.4};

int gpus() { return static_cast<int>(cuda::devices().size()); }
Device gpu_of(const Communicator& communicator) { return {DeviceKind::kCuda, communicator.rank()}; }

Tensor filled(Device gpu, double value) { return Tensor::full({1000}, DType::kFloat32, value, gpu); }

std::vector<float> values(const Tensor& tensor) {
  const Tensor here = tensor.to(Device());
  const auto span = here.span<float>();
  return {span.begin(), span.end()};
}

class NcclGraphs : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > gpus()) GTEST_SKIP() << "needs " << GetParam() << " GPUs";
  }
  [[nodiscard]] static int members() { return GetParam(); }
};

/// A member's results of six steps, each with two all-reduces and a broadcast.
std::vector<float> stepped(Communicator& communicator, bool by_graph) {
  const Device gpu = gpu_of(communicator);
  const Tensor input = filled(gpu, 0);
  const Tensor first = filled(gpu, 0);
  const Tensor sum = filled(gpu, 0);
  const auto step = [&] {
    const Tensor own = Tensor::uninitialized({1000}, DType::kFloat32, gpu);
    own.copy_from(input);
    first.copy_from(input);
    Work work = communicator.all_reduce_async(own, ReduceOp::kSum);
    Work sent = communicator.broadcast_async(first, 0);
    work.wait();
    sum.copy_from(own);
    communicator.all_reduce(sum, ReduceOp::kMax);
    sent.wait();
  };
  step();
  std::optional<cuda::Graph> graph;
  if (by_graph) graph = cuda::capture(gpu, step);
  std::vector<float> results;
  for (int i = 0; i < 6; ++i) {
    input.fill(0.1 * (communicator.rank() + 1) + i);
    if (by_graph)
      graph->launch();
    else
      step();
    if (i % 3 == 0) communicator.barrier();
    for (const Tensor& tensor : {sum, first}) results.push_back(values(tensor)[static_cast<std::size_t>(i)]);
  }
  return results;
}

TEST_P(NcclGraphs, LeaveTheBitsOfTheStepsThatTheyReplace) {
  for_each_gpu_communicator(
      members(),
      [](Communicator& communicator) {
        const std::vector<float> wanted = stepped(communicator, false);
        EXPECT_THAT(stepped(communicator, true), ElementsAreArray(wanted));
      },
      kPatient);
}

TEST_P(NcclGraphs, AreQueuedWithoutLookingAtTheResults) {
  for_each_gpu_communicator(
      members(),
      [](Communicator& communicator) {
        const Tensor sum = filled(gpu_of(communicator), 1);
        const auto step = [&] { communicator.all_reduce(sum, ReduceOp::kSum); };
        step();
        cuda::Graph graph = cuda::capture(gpu_of(communicator), step);
        for (int i = 0; i < 5; ++i) graph.launch();
        double wanted = 1;
        for (int i = 0; i < 6; ++i) wanted *= communicator.size();
        EXPECT_THAT(values(sum), Each(wanted));
      },
      kPatient);
}

TEST_P(NcclGraphs, AskForNothingWhenTheyAreLaunched) {
  if (call_counter() == nullptr) GTEST_SKIP() << "only the stand-in counts";
  std::barrier all_are_here(members());
  std::atomic<std::uint64_t> before = 0;
  const auto count = [] {
    return calls_of(kDearCalls) + calls_of({"cudaMallocAsync", "cudaFreeAsync", "cudaLaunchKernel"});
  };
  for_each_gpu_communicator(
      members(),
      [&](Communicator& communicator) {
        const Device gpu = gpu_of(communicator);
        const Tensor sum = filled(gpu, 1);
        const auto step = [&] { communicator.all_reduce(sum, ReduceOp::kMax); };
        step();
        cuda::Graph graph = cuda::capture(gpu, step);
        const auto launch = [&] {
          graph.launch();
          synchronize(gpu);  // otherwise it depends on the threads how many launches are in flight
          // The member's first thread gives events back some time after.
          communicator.barrier();
        };
        // So many are not in flight again, for which more events would be made.
        std::atomic<bool> busy = true;
        keep_busy(gpu, busy);
        for (int i = 0; i < 8; ++i) graph.launch();
        busy = false;
        for (int i = 0; i < 3; ++i) launch();
        all_are_here.arrive_and_wait();
        if (communicator.rank() == 0) before = count();
        all_are_here.arrive_and_wait();
        for (int i = 0; i < 5; ++i) launch();
        all_are_here.arrive_and_wait();
        const std::uint64_t after = count();
        EXPECT_EQ(after, before);
        all_are_here.arrive_and_wait();
      },
      kPatient);
}

TEST_P(NcclGraphs, TakeInWhatNobodyHasWaitedFor) {
  std::barrier all_have_launched(members());
  std::atomic<bool> busy = true;
  for_each_gpu_communicator(
      members(),
      [&](Communicator& communicator) {
        const Tensor sum = filled(gpu_of(communicator), 1);
        communicator.all_reduce(sum, ReduceOp::kMax);  // connects, for which NCCL may wait for the GPU
        synchronize(gpu_of(communicator));
        keep_busy(gpu_of(communicator), busy);
        const Tensor read = filled(gpu_of(communicator), 0);
        Work before = communicator.all_reduce_async(sum, ReduceOp::kSum);
        std::optional<Work> within;
        cuda::Graph graph = cuda::capture(gpu_of(communicator), [&] {
          before.wait();
          read.copy_from(sum);
          within = communicator.all_reduce_async(sum, ReduceOp::kSum);
        });
        within->wait();
        EXPECT_TRUE(within->done());
        graph.launch();
        all_have_launched.arrive_and_wait();
        busy = false;
        EXPECT_THAT(values(read), Each(communicator.size()));
        EXPECT_THAT(values(sum), Each(communicator.size() * communicator.size()));
      },
      kPatient);
}

TEST_P(NcclGraphs, AreTouchedByOneThreadAtATime) {
  for_each_gpu_communicator(
      members(),
      [](Communicator& communicator) {
        const Device gpu = gpu_of(communicator);
        const Tensor sum = filled(gpu, 1);
        const Tensor other = filled(gpu, 0);
        Work before = communicator.all_reduce_async(sum, ReduceOp::kMax);
        cuda::Graph graph = cuda::capture(gpu, [&] {
          Work within = communicator.all_reduce_async(sum, ReduceOp::kSum);
          other.fill(1);
          while (!within.done()) other.fill(2);  // the computation goes on
          within.wait();
        });
        before.wait();
        graph.launch();
        EXPECT_THAT(values(sum), Each(communicator.size()));
      },
      kPatient);
}

TEST_P(NcclGraphs, LeaveWhatWasWaitedForInTheirCaptureWaitedFor) {
  std::barrier all_are_here(members());
  std::atomic<bool> busy = true;
  for_each_gpu_communicator(
      members(),
      [&](Communicator& communicator) {
        const Device gpu = gpu_of(communicator);
        const Tensor sum = filled(gpu, 1);
        const Tensor read = filled(gpu, 0);
        communicator.all_reduce(sum, ReduceOp::kMax);  // connects, for which NCCL may wait for the GPU
        synchronize(gpu);
        // The others' collective waits for this GPU.
        if (communicator.rank() == 0) keep_busy(gpu, busy);
        Work before = communicator.all_reduce_async(sum, ReduceOp::kSum);
        const cuda::Graph never_launched = cuda::capture(gpu, [&] { before.wait(); });
        read.copy_from(sum);
        all_are_here.arrive_and_wait();
        busy = false;
        EXPECT_THAT(values(read), Each(communicator.size()));
      },
      kPatient);
}

TEST_P(NcclGraphs, OutliveTheirCommunicator) {
  auto communicators = make_gpu_communicators(members(), kPatient);
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  for (auto& communicator : communicators) {
    threads.emplace_back([&communicator] {
      const Device gpu = gpu_of(*communicator);
      const int size = communicator->size();
      const Tensor sum = filled(gpu, 1);
      cuda::Graph graph = cuda::capture(gpu, [&] { communicator->all_reduce(sum, ReduceOp::kSum); });
      communicator.reset();
      graph.launch();
      EXPECT_THAT(values(sum), Each(size));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(NcclGraphs, HoldNothingThatGoesByTheHost) {
  for_each_gpu_communicator(
      members(),
      [](Communicator& communicator) {
        const Device gpu = gpu_of(communicator);
        const Tensor here = Tensor::full({10}, DType::kFloat32, 1);
        const Tensor short_numbers = Tensor::full({10}, DType::kInt16, 1, gpu);
        std::vector<std::pair<std::string, std::function<void()>>> cases{
            {"barrier()", [&] { communicator.barrier(); }},
            {"all_reduce(float32[10], sum)", [&] { communicator.all_reduce(here, ReduceOp::kSum); }},
            {"all_reduce(int16[10], sum, on GPUs)",
             [&] { static_cast<void>(communicator.all_reduce_async(short_numbers, ReduceOp::kSum)); }},
        };
        if (communicator.size() > 1)
          cases.emplace_back("send(float32[10]", [&] {
            communicator.send(here, (communicator.rank() + 1) % communicator.size());
          });
        for (const auto& [text, call] : cases) {
          EXPECT_THAT(message_of(ErrorCode::kWrongContext,
                                 [&, &made = call] { static_cast<void>(cuda::capture(gpu, made)); }),
                      AllOf(HasSubstr(text), HasSubstr("goes through the host")));
          EXPECT_FALSE(cuda::is_captured(gpu));
        }
        PurposeOf purpose(1, Caller::kMember, [] { return PurposeWords{"all_reduces (sum) {}"}; });
        const auto empty = [&] {
          const CommunicationScope scope(communicator, {}, purpose);
          communicator.barrier();
        };
        EXPECT_THAT(
            message_of(ErrorCode::kWrongContext, [&] { static_cast<void>(cuda::capture(gpu, empty)); }),
            HasSubstr("the call that all_reduces (sum) {} goes through the host, as barrier, and"));
        EXPECT_NO_THROW(communicator.barrier());
      },
      kPatient);
}

TEST(NcclGraphsOfFurtherGpus, HoldNothingThatGoesByTheHost) {
  if (gpus() < 2) GTEST_SKIP() << "needs 2 GPUs";
  for_each_gpu_communicator(
      1,
      [](Communicator& communicator) {
        const Device further(DeviceKind::kCuda, 1);
        const Tensor tensor = filled(further, 1);
        const auto call = [&] { communicator.all_reduce_async(tensor, ReduceOp::kSum).wait(); };
        EXPECT_THAT(
            message_of(ErrorCode::kWrongContext, [&] { static_cast<void>(cuda::capture(further, call)); }),
            AllOf(HasSubstr("goes through the host"), HasSubstr("captured on cuda:1")));
        EXPECT_NO_THROW(call());
      },
      kPatient);
}

INSTANTIATE_TEST_SUITE_P(Members, NcclGraphs, ::testing::Values(1, 2, 3, 4));

constexpr int kMembers = 3;

class NcclGraphFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpus() < kMembers) GTEST_SKIP() << "needs " << kMembers << " GPUs";
    if (find_injection() == nullptr) GTEST_SKIP() << "only the stand-in fails when it is told to";
    // Another member's failure may have come before an earlier fault.
    for (int rank = 0; rank < kMembers; ++rank) inject(rank, NcclFault::kNone);
  }
};

/// The text that the second launch of a graph ends in where its result is read, the same on all members, and
/// again for what they do afterwards. `launch_second` is called by each member.
std::string failure_of_second(
    ErrorCode code, const CommunicationOptions& options,
    const std::function<void(Communicator&, cuda::Graph&)>& launch_second,
    const std::function<void()>& in_the_end = [] {}) {
  Texts texts;
  std::barrier all_are_here(kMembers);
  for_each_gpu_communicator(
      kMembers,
      [&](Communicator& communicator) {
        const Device gpu = gpu_of(communicator);
        const Tensor sum = filled(gpu, 1);
        const auto step = [&] { communicator.all_reduce(sum, ReduceOp::kSum); };
        step();
        cuda::Graph graph = cuda::capture(gpu, step);
        graph.launch();
        EXPECT_THAT(values(sum), Each(kMembers * kMembers));
        all_are_here.arrive_and_wait();
        texts.add(message_of(code, [&] {
          launch_second(communicator, graph);  // which may be too late already
          static_cast<void>(values(sum));
          graph.launch();  // where this member has not launched the second
        }));
        texts.add(message_of(code, [&] { graph.launch(); }));
        texts.add(message_of(code, step));
        all_are_here.arrive_and_wait();
        if (communicator.rank() == 1) in_the_end();
      },
      options);
  return texts.only();
}

TEST_F(NcclGraphFaults, NameWhoDoesNotLaunch) {
  std::barrier others_have_failed(kMembers);
  const std::string text = failure_of_second(ErrorCode::kDeadlineExceeded, kImpatient,
                                             [&](Communicator& communicator, cuda::Graph& graph) {
                                               if (communicator.rank() != 1) {
                                                 graph.launch();
                                                 while (!communicator.failure()) std::this_thread::yield();
                                               }
                                               others_have_failed.arrive_and_wait();
                                             });
  EXPECT_THAT(text, AllOf(ContainsRegex("all_reduce #[0-9]+: deadline of 0.4[0-9]* s passed"),
                          HasSubstr("all_reduce(float32[1000], sum, on GPUs, in a graph)"),
                          HasSubstr("missing: member 1 (worker 0, host"), Not(HasSubstr("member 0")),
                          Not(HasSubstr("member 2"))));
}

TEST_F(NcclGraphFaults, NameWhoMakesACallInstead) {
  const std::string text = failure_of_second(
      ErrorCode::kDeadlineExceeded, kImpatient, [&](Communicator& communicator, cuda::Graph& graph) {
        if (communicator.rank() != 1) return graph.launch();
        EXPECT_THROW(communicator.all_reduce(filled(gpu_of(communicator), 1), ReduceOp::kSum), Error);
      });
  EXPECT_THAT(text, AllOf(HasSubstr("missing: "), HasSubstr("member 0 (worker 0"),
                          HasSubstr("member 2 (worker 0"), Not(HasSubstr("member 1"))));
}

TEST_F(NcclGraphFaults, OfAGpuThatHangsAreNoticedInTime) {
  const std::string text = failure_of_second(ErrorCode::kDeadlineExceeded, kImpatient,
                                             [](Communicator& communicator, cuda::Graph& graph) {
                                               if (communicator.rank() == 1)
                                                 inject(1, NcclFault::kNeverTakesPart);
                                               graph.launch();
                                             });
  EXPECT_THAT(text, AllOf(HasSubstr("deadline of 0.4 s passed on the GPUs in all_reduce(float32[1000], sum, "
                                    "on GPUs, in a graph)"),
                          HasSubstr("all members have launched it")));
}

TEST_F(NcclGraphFaults, ThatNcclReportsEndTheLaunchesOfAll) {
  const std::string text = failure_of_second(ErrorCode::kUnavailable, kPatient,
                                             [](Communicator& communicator, cuda::Graph& graph) {
                                               if (communicator.rank() == 1)
                                                 inject(1, NcclFault::kAsyncError);
                                               graph.launch();
                                             });
  EXPECT_THAT(text, AllOf(HasSubstr("remote process exited"), HasSubstr("a fault was injected")));
}

TEST_F(NcclGraphFaults, NameWhoseGpuIsBusyElsewhere) {
  static std::atomic<bool> busy;
  busy = true;
  const std::string text = failure_of_second(
      ErrorCode::kDeadlineExceeded, kImpatient,
      [](Communicator& communicator, cuda::Graph& graph) {
        if (communicator.rank() == 1) keep_busy(gpu_of(communicator), busy);
        graph.launch();
      },
      [] { busy = false; });
  EXPECT_THAT(text, AllOf(HasSubstr("the GPU of member 1 (worker 0, host"),
                          HasSubstr("still computes what was queued before the call")));
}

TEST_F(NcclGraphFaults, AnAbortEndsLaunches) {
  const std::string text =
      failure_of_second(ErrorCode::kAborted, kPatient, [](Communicator& communicator, cuda::Graph& graph) {
        if (communicator.rank() == 2) return communicator.abort(Aborted("replica 2 failed"));
        graph.launch();
      });
  EXPECT_EQ(text, "replica 2 failed");
}

TEST_F(NcclGraphFaults, MembersOfWhomNotAllCaptureAreNamed) {
  Texts texts;
  for_each_gpu_communicator(
      kMembers,
      [&](Communicator& communicator) {
        const Device gpu = gpu_of(communicator);
        const Tensor sum = filled(gpu, 1);
        const auto step = [&] { communicator.all_reduce(sum, ReduceOp::kSum); };
        step();
        texts.add(message_of(ErrorCode::kInvalidArgument, [&] {
          if (communicator.rank() == 1) return step();
          static_cast<void>(cuda::capture(gpu, step));
        }));
        EXPECT_FALSE(cuda::is_captured(gpu));
      },
      kPatient);
  EXPECT_THAT(texts.only(),
              AllOf(ContainsRegex("member 1 .* called all_reduce\\(float32\\[1000\\], sum, on GPUs\\)"),
                    HasSubstr("the other 2 called all_reduce(float32[1000], sum, on GPUs, in a graph)")));
}

TEST_F(NcclGraphFaults, AnErrorOfTheStepEndsTheCaptureOfAll) {
  Texts texts;
  for_each_gpu_communicator(
      kMembers,
      [&](Communicator& communicator) {
        const Device gpu = gpu_of(communicator);
        const Tensor sum = filled(gpu, 1);
        texts.add(message_of(ErrorCode::kAborted, [&] {
          static_cast<void>(cuda::capture(gpu, [&] {
            Work work = communicator.all_reduce_async(sum, ReduceOp::kSum);
            if (communicator.rank() == 2) communicator.abort(Aborted("replica 2 failed"));
            work.wait();
            communicator.all_reduce(sum, ReduceOp::kSum);
          }));
        }));
        EXPECT_FALSE(cuda::is_captured(gpu));
        EXPECT_NO_THROW(static_cast<void>(filled(gpu, 1).to(Device())));
      },
      kPatient);
  EXPECT_EQ(texts.only(), "replica 2 failed");
}

/// The values on each GPU after five steps of a training; each replica has a graph of its own.
std::vector<std::vector<float>> trained(bool by_graphs) {
  const MirroredStrategy strategy(cuda::devices(), kPatient);
  const auto scope = strategy.scope();
  std::vector<Variable> variables;
  for (const std::int64_t elements : {1000, 3, 70000})
    variables.emplace_back(VariableOptions{.initial_value = Tensor::full({elements}, DType::kFloat32, 1)});
  Momentum optimizer({.learning_rate = 0.1});
  std::vector<std::optional<cuda::Graph>> graphs(static_cast<std::size_t>(gpus()));
  std::vector<Tensor> inputs;
  for (const Device gpu : cuda::devices()) inputs.push_back(Tensor::full({1}, DType::kFloat32, 0, gpu));

  const auto step = [&](ReplicaContext& replica) {
    const auto id = static_cast<std::size_t>(replica.replica_id_in_sync_group());
    std::vector<GradientAndVariable> gradients;
    for (const Variable& variable : variables) {
      const Tensor gradient = Tensor::full(variable.shape(), DType::kFloat32, 0.25, replica.device());
      gradient.rows(0, 1).copy_from(inputs[id]);
      gradients.push_back({gradient, variable});
    }
    optimizer.apply_gradients(gradients);
  };
  strategy.run(step);
  for (int i = 0; i < 5; ++i) {
    strategy.run([&](ReplicaContext& replica) {
      const auto id = static_cast<std::size_t>(replica.replica_id_in_sync_group());
      inputs[id].fill(0.3 * i + static_cast<double>(id));
      if (!by_graphs) return step(replica);
      if (i == 0) graphs[id] = cuda::capture(replica.device(), [&] { step(replica); });
      graphs[id]->launch();
    });
  }
  std::vector<std::vector<float>> results;
  for (const Variable& variable : variables) {
    for (const Tensor& component : variable.components()) results.push_back(values(component));
  }
  return results;
}

TEST(NcclGraphStrategies, ReplicasThatHaveAGraphEachTrainAsWithout) {
  if (gpus() < 2) GTEST_SKIP() << "needs 2 GPUs";
  const std::vector<std::vector<float>> wanted = trained(false);
  const std::vector<std::vector<float>> replayed = trained(true);
  ASSERT_EQ(replayed.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_THAT(replayed[i], ElementsAreArray(wanted[i])) << i;
}

}  // namespace
}  // namespace cohort::testing
