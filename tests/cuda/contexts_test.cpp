// In a program of its own, because a context stays once a process has one.
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>
#include <cohort/device/tensor.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/train/optimizers/sgd.h>

#include "calls.h"
#include "device/device_runtime.h"

namespace cohort::cuda {
namespace {

TEST(Contexts, AreNotMadeOnGpusThatNobodyUses) {
  if (devices().size() < 2) GTEST_SKIP() << "needs two GPUs";
  const Device last = devices().back();
  ASSERT_FALSE(calls::has_context(0));
  const auto use = [last] {
    const Tensor tensor = Tensor::full({4}, DType::kFloat32, 2, last);
    EXPECT_THAT(tensor.to(Device()).span<float>(), ::testing::Each(2));
    const EnteredDevice entered(last);
    EXPECT_EQ(calls::current_device(), last.index());
  };
  const auto train = [] {
    std::vector<Device> others = devices();
    others.erase(others.begin());
    const MirroredStrategy strategy(others);
    const auto scope = strategy.scope();
    const Variable weights({.initial_value = Tensor::full({8}, DType::kFloat32, 1)});
    Sgd optimizer({.learning_rate = 1});
    strategy.run([&] { optimizer.apply_gradients({{weights.read().clone(), weights}}); });
    EXPECT_THAT(weights.read().to(Device()).span<float>(),
                ::testing::Each(1 - strategy.num_replicas_in_sync()));
  };
  use();
  std::thread(use).join();
  train();
  std::thread(train).join();
  EXPECT_TRUE(calls::has_context(last.index()));
  EXPECT_FALSE(calls::has_context(0));

  const CurrentDevice first(devices().front());
  use();
  EXPECT_EQ(calls::current_device(), 0) << "one that is used becomes current again";
}

}  // namespace
}  // namespace cohort::cuda
