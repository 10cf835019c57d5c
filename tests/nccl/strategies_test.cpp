// Strategies over the GPUs of one process, whose values NCCL combines.
#include <stdexcept>

#include <gmock/gmock.h>

#include <cohort/device/tensor.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/nccl_all_reduce.h>

#include "../cuda/calls_counted.h"
#include "../strategy/strategies.h"
#include "gpu_members.h"
#include "nccl_faults.h"

namespace cohort::testing {
namespace {

using ::testing::Each;

/// A function that only NCCL's stand-in calls, once per launch.
std::uint64_t launches() { return call_counter() == nullptr ? 0 : calls_of({"cudaLaunchHostFunc"}); }

void expect_launches(std::uint64_t counted, int wanted) {
  if (call_counter() == nullptr) return;
  EXPECT_EQ(counted, static_cast<std::uint64_t>(wanted));
}

class NcclStrategies : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpus() < 2) GTEST_SKIP() << "needs 2 GPUs";
  }
  [[nodiscard]] static int gpus() { return static_cast<int>(gpu_devices().size()); }

  /// One tensor per replica, on its GPU: its number + 1.
  [[nodiscard]] static PerReplica<Tensor> values(const Strategy& strategy, std::int64_t elements) {
    return strategy.run([=](ReplicaContext& replica) {
      const auto value = static_cast<double>(replica.replica_id_in_sync_group() + 1);
      return Tensor::full({elements}, DType::kFloat32, value, replica.device());
    });
  }
};

TEST_F(NcclStrategies, Case022_ReduceWithinReplicas) {
  const MirroredStrategy strategy(gpu_devices(), kPatient);
  EXPECT_EQ(strategy.extended().cross_device_ops().name(), "CollectiveAllReduce");
  const std::uint64_t before = launches();
  const PerReplica<Tensor> sums = strategy.run(
      [](ReplicaContext& replica, const Tensor& own) { return replica.all_reduce(ReduceOp::kSum, own); },
      values(strategy, 1000));
  for (const Tensor& sum : strategy.local_results(sums)) {
    EXPECT_EQ(sum.device().kind(), DeviceKind::kCuda);
    EXPECT_THAT(numbers(sum.on_host()), Each(sum_to(gpus())));
  }
  EXPECT_EQ(strategy.extended().communicator(0).name(), "nccl");
  expect_launches(launches() - before, gpus());
}

TEST_F(NcclStrategies, SumInPacksByNcclAllReduce) {
  std::vector<ReduceRequest> requests;
  for (int i = 0; i < 5; ++i) {
    ReduceRequest request{{}, Destinations(gpu_devices())};
    for (int gpu = 0; gpu < gpus(); ++gpu) {
      const Device device(DeviceKind::kCuda, gpu);
      request.value.emplace_back(Tensor::full({i, 3}, DType::kFloat32, gpu + i, device));
    }
    requests.push_back(std::move(request));
  }
  for (const int packs : {0, 1, 2}) {
    NcclAllReduce ops({.num_packs = packs});
    const std::uint64_t before = launches();
    const std::vector<Components> sums = ops.batch_reduce(ReduceOp::kSum, requests);
    ASSERT_EQ(sums.size(), requests.size());
    for (int i = 0; i < 5; ++i) {
      for (const TensorOrSlices& sum : sums[static_cast<std::size_t>(i)])
        EXPECT_THAT(numbers(values_of(sum).on_host()), Each(sum_to(gpus() - 1) + i * gpus())) << packs;
    }
    // The first tensor has no elements.
    const int calls = packs == 0 ? 4 : packs;
    expect_launches(launches() - before, calls * gpus());
  }
}

TEST_F(NcclStrategies, KeepPacksInRegisteredMemory) {
  const MirroredStrategy strategy(gpu_devices(), kPatient);
  const auto step = [&](bool fails) {
    strategy.run(
        [=](ReplicaContext& replica, const Tensor& own) {
          const Tensor gradients[] = {own, own.clone()};
          replica.all_reduce_in_place(ReduceOp::kSum, gradients);
          for (const Tensor& sum : gradients) EXPECT_THAT(numbers(sum.on_host()), Each(sum_to(gpus())));
          if (fails && replica.replica_id_in_sync_group() == 1) throw std::runtime_error("a replica failed");
        },
        values(strategy, 10));
  };
  for (int i = 0; i < 3; ++i) step(false);
  expect_registered(gpus());
  // The others' communicators are of no more use then; with the new ones everything is made anew.
  EXPECT_THROW(step(true), std::runtime_error);
  step(false);
  expect_registered(gpus());
}

TEST_F(NcclStrategies, AskForNoMoreAfterTheFirstSteps) {
  if (call_counter() == nullptr) GTEST_SKIP() << "only the stand-in counts";
  const MirroredStrategy strategy(gpu_devices(), kPatient);
  const auto step = [&](ReplicaContext& replica, const Tensor& own) {
    for (int i = 0; i < 10; ++i) {
      replica.communicator().all_reduce(own, ReduceOp::kMax);
      synchronize(own.device());  // otherwise it depends on the threads how many calls are in flight
    }
  };
  const PerReplica<Tensor> own = values(strategy, 1000);
  strategy.run([](ReplicaContext& replica) { have_many_in_flight(replica.communicator()); });
  strategy.run(step, own);
  const std::uint64_t before = calls_of(kDearCalls);
  strategy.run(step, own);
  EXPECT_EQ(calls_of(kDearCalls), before);
}

}  // namespace
}  // namespace cohort::testing
