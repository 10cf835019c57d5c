// In a program of its own, for what a process has used stays used.
#include <thread>

#include <gmock/gmock.h>

#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>
#include <cohort/device/device_runtime.h>
#include <cohort/device/tensor.h>

#include "calls.h"

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
  use();
  std::thread(use).join();
  EXPECT_TRUE(calls::has_context(last.index()));
  EXPECT_FALSE(calls::has_context(0));

  const CurrentDevice first(devices().front());
  use();
  EXPECT_EQ(calls::current_device(), 0) << "one that is used becomes current again";
}

}  // namespace
}  // namespace cohort::cuda
