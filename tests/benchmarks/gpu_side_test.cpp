#include "gpu/gpu_side.h"

#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include <cohort/cuda/devices.h>
#include <cohort/device/device_runtime.h>

namespace cohort::bench {
namespace {

constexpr std::int64_t kElements = 1000;

Buffers buffers_on(Device device) {
  const auto make = [](Device where) { return Tensor::uninitialized({kElements}, DType::kFloat32, where); };
  return {make(device), make(device), make(Device()), make(Device()), {}};
}

TEST(GpuSide, TakesTheInputThereAndTheResultBack) {
  for (const Device device : cuda::devices()) {
    const Buffers buffers = buffers_on(device);
    const auto side = make_gpu_side(buffers);
    for (const float value : {1.5F, 2.5F}) {
      buffers.host_input.fill(value);
      buffers.host_output.fill(0);
      side->bring();
      static_cast<void>(side->time([&] { buffers.output.copy_from(buffers.input); }));
      side->fetch();
      EXPECT_THAT(buffers.host_output.span<float>(), testing::Each(value));
    }
  }
}

TEST(GpuSide, TimesFromTheBeginningOfACallToItsEnd) {
  static constexpr std::chrono::milliseconds kWork{5};
  for (const Device device : cuda::devices()) {
    const auto side = make_gpu_side(buffers_on(device));
    const std::uint64_t nanoseconds = side->time([device] {
      synchronize(device);  // so that the GPU has come to where the time begins
      std::this_thread::sleep_for(kWork);
    });
    EXPECT_GE(nanoseconds, std::chrono::nanoseconds(kWork).count() * 9 / 10);
  }
}

}  // namespace
}  // namespace cohort::bench
