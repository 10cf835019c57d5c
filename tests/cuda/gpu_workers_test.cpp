// Workers that are ranks, on GPUs of their own or on shared ones: GPU_STAND_IN_DEVICES says how many the
// node has. Their values come together through the host and must be those of CPU devices, to the bit.
#include <gmock/gmock.h>

#include <cohort/device/tensor.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/train/optimizers/sgd.h>

#include "mpi_main.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAreArray;

constexpr CommunicationOptions kOptions{.timeout_seconds = 60};

/// What each worker is expected to take of the node's GPUs.
std::vector<Device> expected_gpus() {
  const std::vector<Device> all = gpu_devices();
  const auto count = static_cast<int>(all.size());
  const int workers = session().size();
  const int rank = session().rank();
  if (count < workers) return {all[static_cast<std::size_t>(rank % count)]};
  const int share = count / workers;
  return {all.begin() + rank * share, all.begin() + (rank + 1) * share};
}

MultiWorkerMirroredStrategy on_gpus() { return MultiWorkerMirroredStrategy(session(), kOptions); }

MultiWorkerMirroredStrategy on_cpus() {
  return MultiWorkerMirroredStrategy(session(), kOptions,
                                     cpu_devices(static_cast<int>(expected_gpus().size())));
}

TEST(GpuWorkers, TakeTheirShareOfTheGpusOfTheNode) {
  EXPECT_THAT(on_gpus().extended().worker_devices(), ElementsAreArray(expected_gpus()));
}

Tensor thirds(int seed, Device device) {
  Tensor tensor = Tensor::uninitialized({7}, DType::kFloat32);
  float value = 1.0F / static_cast<float>(seed + 3);
  for (float& element : tensor.span<float>()) element = value *= 1.1F;
  return tensor.to(device);
}

std::vector<Tensor> results(const Strategy& strategy) {
  const auto scope = strategy.scope();
  // The chief's value goes to everybody.
  const Variable weights({.initial_value = thirds(session().rank(), Device())});
  Sgd optimizer({.learning_rate = 0.1});
  for (int step = 0; step < 3; ++step) {
    strategy.run([&](const ReplicaContext& replica) {
      const int seed = replica.replica_id_in_sync_group() + step;
      optimizer.apply_gradients({{thirds(seed, replica.device()), weights}});
    });
  }
  const auto values = strategy.run([](const ReplicaContext& replica) {
    const Tensor own = thirds(replica.replica_id_in_sync_group(), replica.device());
    EXPECT_EQ(replica.all_gather(own, 0).device(), replica.device());
    return replica.all_reduce(ReduceOp::kMean, own);
  });
  std::vector<Tensor> all{strategy.reduce(ReduceOp::kSum, values), strategy.gather(values, 0)};
  all.insert(all.end(), weights.components().begin(), weights.components().end());
  return all;
}

TEST(GpuWorkers, ComputeWhatCpuDevicesCompute) {
  const std::vector<Tensor> there = results(on_gpus());
  const std::vector<Tensor> here = results(on_cpus());
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i) EXPECT_TRUE(bitwise_equal(there[i], here[i])) << i;
}

TEST(GpuWorkers, AreToldOnceHowTheirValuesComeTogether) {
  ::testing::internal::CaptureStderr();
  static_cast<void>(on_gpus());
  const std::string log = ::testing::internal::GetCapturedStderr();
  const bool shared = static_cast<int>(gpu_devices().size()) < session().size();
  const bool said = log.find("go through the host") != std::string::npos;
  const bool alone = session().size() == 1 && expected_gpus().size() == 1;
  EXPECT_EQ(said, session().is_chief() && !alone) << log;
  EXPECT_EQ(log.find("have the same GPU") != std::string::npos, session().is_chief() && shared) << log;
}

}  // namespace
}  // namespace cohort::testing
