// A whole training step over ranks, `run` included, as a graph.
#include <cohort/cuda/graph.h>

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/cuda/devices.h>
#include <cohort/nccl/communicator.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/train/optimizers/momentum.h>

#include "mpi_main.h"
#include "thrown.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::message_of;
using testing::session;

/// Ranks share GPUs where there are too few, which NCCL permits if NCCL_HOSTID differs.
Device own_gpu() {
  return {DeviceKind::kCuda, session().self().local_rank % static_cast<int>(cuda::devices().size())};
}

std::vector<float> values(const Tensor& tensor) {
  const Tensor here = tensor.to(Device());
  const auto span = here.span<float>();
  return {span.begin(), span.end()};
}

/// The weights after six steps, and the losses of the last.
std::vector<std::vector<float>> trained(bool by_graph) {
  const MultiWorkerMirroredStrategy strategy(
      session(), {.timeout_seconds = 60, .implementation = CommunicationImplementation::kNccl}, {own_gpu()});
  const auto scope = strategy.scope();
  const Variable weights({.initial_value = Tensor::full({5000}, DType::kFloat32, 1)});
  const Variable bias({.initial_value = Tensor::full({3}, DType::kFloat32, 2)});
  Momentum optimizer({.learning_rate = 0.1});
  const Tensor input = Tensor::full({5000}, DType::kFloat32, 0, own_gpu());
  PerReplica<Tensor> losses;
  const auto step = [&] {
    losses = strategy.run([&](ReplicaContext& replica) {
      const Tensor gradient = Tensor::uninitialized({5000}, DType::kFloat32, replica.device());
      gradient.copy_from(input);
      const Tensor small =
          Tensor::full({3}, DType::kFloat32, replica.replica_id_in_sync_group() + 0.1, replica.device());
      optimizer.apply_gradients({{gradient, weights}, {small, bias}});
      return replica.all_reduce(ReduceOp::kSum, input.rows(0, 2));
    });
  };
  step();
  std::optional<cuda::Graph> graph;
  if (by_graph) graph = cuda::capture(own_gpu(), step);
  for (int i = 1; i < 6; ++i) {
    input.fill(0.3 * i + session().rank());
    if (by_graph)
      graph->launch();
    else
      step();
  }
  return {values(weights.components().front()), values(bias.components().front()),
          values(strategy.local_results(losses).front())};
}

TEST(NcclGraphsOverRanks, TrainAsTheStepsThatTheyReplace) {
  const std::vector<std::vector<float>> wanted = trained(false);
  const std::vector<std::vector<float>> replayed = trained(true);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_THAT(replayed[i], ElementsAreArray(wanted[i])) << i;
}

TEST(NcclGraphsOverRanks, NameWhoDoesNotLaunch) {
  if (session().size() == 1) GTEST_SKIP();
  const auto others = session().make_communicator({});
  const std::vector<std::unique_ptr<Communicator>> hosts =
      session().make_communicators({.timeout_seconds = 0.5}, 1);
  const Device gpu = own_gpu();
  const auto communicator = std::move(nccl::make_communicators(hosts, {&gpu, 1}).front());
  const Tensor sum = Tensor::full({1000}, DType::kFloat32, 1, gpu);
  cuda::Graph graph = cuda::capture(gpu, [&] { communicator->all_reduce(sum, ReduceOp::kSum); });
  graph.launch();
  EXPECT_EQ(values(sum).back(), static_cast<float>(session().size()));
  others->barrier();  // no result is still to be read
  const std::string text = message_of(ErrorCode::kDeadlineExceeded, [&] {
    if (session().rank() == 1) {
      others->barrier();
      graph.launch();
    } else {
      graph.launch();
    }
    static_cast<void>(values(sum));
  });
  EXPECT_THAT(text, AllOf(HasSubstr("in a graph"), HasSubstr("missing: member 1 (worker 1")));
  if (session().rank() != 1) others->barrier();
}

}  // namespace
}  // namespace cohort
