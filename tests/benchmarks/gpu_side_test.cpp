#include "gpu/gpu_side.h"

#include <chrono>
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include <cuda_runtime_api.h>

#include <cohort/base/error.h>
#include <cohort/cuda/devices.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/tensor.h>

namespace cohort::bench {
namespace {

constexpr std::int64_t kElements = 1000;

GpuTensor tensor_on(Device device) {
  const auto make = [](Device where) { return Tensor::uninitialized({kElements}, DType::kFloat32, where); };
  return {make(device), make(Device())};
}

TEST(GpuSide, TakesTheInputsThereAndTheResultsBack) {
  for (const Device device : cuda::devices()) {
    const std::vector<GpuTensor> inputs{tensor_on(device), tensor_on(device)};
    const std::vector<GpuTensor> outputs{tensor_on(device), tensor_on(device)};
    const auto side = make_gpu_side(inputs, outputs);
    for (const float value : {1.5F, 2.5F}) {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        inputs[i].host.fill(value + static_cast<float>(i));
        outputs[i].host.fill(0);
      }
      side->bring();
      const auto copy = [&] {
        for (std::size_t i = 0; i < inputs.size(); ++i) outputs[i].there.copy_from(inputs[i].there);
      };
      static_cast<void>(side->time(copy, {}));
      side->fetch();
      for (std::size_t i = 0; i < outputs.size(); ++i)
        EXPECT_THAT(outputs[i].host.span<float>(), testing::Each(value + static_cast<float>(i)));
    }
  }
}

TEST(GpuSide, TimesFromTheBeginningOfACallToItsEnd) {
  static constexpr std::chrono::milliseconds kWork{5};
  for (const Device device : cuda::devices()) {
    const auto side = make_gpu_side({tensor_on(device)}, {});
    const auto call = [device] {
      synchronize(device);  // so that the GPU has come to where the time begins
      std::this_thread::sleep_for(kWork);
    };
    EXPECT_GE(side->time(call, {}), std::chrono::nanoseconds(kWork).count() * 9 / 10);
  }
}

TEST(GpuSide, NamesACallThatDoesNotEnd) {
  for (const Device device : cuda::devices()) {
    const auto side = make_gpu_side({tensor_on(device)}, {});
    const CallLimit limit{.call = "ncclAllReduce of 4 bytes", .seconds = 0.1};
    std::promise<void> gone;
    std::shared_future<void> end = gone.get_future().share();
    const auto stuck = [&] {
      cudaLaunchHostFunc(
          cuda::compute_stream(device).handle(),
          [](void* awaited) { static_cast<const std::shared_future<void>*>(awaited)->wait(); }, &end);
    };
    EXPECT_THAT(
        [&] { static_cast<void>(side->time(stuck, limit)); },
        testing::ThrowsMessage<DeadlineExceeded>("ncclAllReduce of 4 bytes has not ended after 0.1 s"));
    gone.set_value();
    synchronize(device);
    static_cast<void>(side->time([] {}, limit));
  }
}

}  // namespace
}  // namespace cohort::bench
