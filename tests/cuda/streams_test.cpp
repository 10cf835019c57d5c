#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <dlfcn.h>
#include <cuda_runtime_api.h>

#include <cohort/base/error.h>
#include <cohort/cuda/copy.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>
#include <cohort/cuda/dlpack.h>
#include <cohort/cuda/event.h>
#include <cohort/cuda/graph.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/dlpack.h>
#include <cohort/device/tensor.h>

#include "cuda/guard.h"

// Of the stand-in.
extern "C" void gpu_stand_in_fail(int device, cudaError_t error);

namespace cohort::cuda {
namespace {

/// One number on a GPU, for as long as a test.
class Number {
 public:
  explicit Number(Device device) {
    const CurrentDevice current(device);
    EXPECT_EQ(cudaMalloc(&data_, sizeof(std::int32_t)), cudaSuccess);
  }
  ~Number() { cudaFree(data_); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;

  void set_bytes(const Stream& stream, int byte) const {
    EXPECT_EQ(cudaMemsetAsync(data_, byte, sizeof(std::int32_t), stream.handle()), cudaSuccess);
  }
  void copy_from(const Stream& stream, const Number& other) const {
    EXPECT_EQ(cudaMemcpyAsync(data_, other.data_, sizeof(std::int32_t), cudaMemcpyDefault, stream.handle()),
              cudaSuccess);
  }
  [[nodiscard]] std::int32_t value() const {
    std::int32_t value = 0;
    EXPECT_EQ(cudaMemcpy(&value, data_, sizeof value, cudaMemcpyDefault), cudaSuccess);
    return value;
  }

 private:
  void* data_ = nullptr;
};

TEST(Streams, BelongToTheirDevice) {
  for (const Device device : devices()) {
    EXPECT_EQ(compute_stream(device).device(), device);
    EXPECT_EQ(Stream(device).device(), device);
    EXPECT_NE(compute_stream(device).handle(), Stream(device).handle());
    EXPECT_EQ(&compute_stream(device), &compute_stream(device));
  }
}

/// Refuses what is on its GPU, once.
class Refusal final : public Guard {
 public:
  void require_sound() override {
    if (!is_told_.exchange(true)) throw Aborted("worthless");
  }

 private:
  std::atomic<bool> is_told_{false};
};

TEST(Guards, AreAskedWhereTheHostWaits) {
  for (const Device device : devices()) {
    const std::vector<std::function<void()>> waits{
        [&] { compute_stream(device).synchronize(); },
        [&] { Event(device).synchronize(); },
        [&] { synchronize(device); },
        [&] { static_cast<void>(Tensor::full({3}, DType::kFloat32, 1).to(device).to(Device())); },
    };
    for (const auto& wait : waits) {
      Refusal refusal;
      {
        const GuardScope scope(device, refusal);
        EXPECT_THROW(wait(), Aborted);
        EXPECT_NO_THROW(wait());
      }
      Refusal left;
      { const GuardScope scope(device, left); }
      EXPECT_NO_THROW(wait());
    }
  }
}

TEST(Streams, AreThroughAfterSynchronize) {
  for (const Device device : devices()) {
    const Number number(device);
    number.set_bytes(compute_stream(device), 1);
    compute_stream(device).synchronize();
    EXPECT_TRUE(compute_stream(device).idle());
    EXPECT_EQ(number.value(), 0x01010101);
  }
}

TEST(Streams, RunInTheOrderOfTheirEvents) {
  for (const Device device : devices()) {
    const Number source(device);
    const Number target(device);
    const Stream other(device, Stream::Priority::kHigh);
    source.set_bytes(compute_stream(device), 2);
    order(compute_stream(device), other);
    target.copy_from(other, source);
    order(other, compute_stream(device));
    source.set_bytes(compute_stream(device), 3);  // must not overtake the copy
    compute_stream(device).synchronize();
    EXPECT_EQ(target.value(), 0x02020202);
    EXPECT_EQ(source.value(), 0x03030303);
  }
}

TEST(Streams, RunInTheOrderOfEventsOfOtherDevices) {
  const Device first = devices().front();
  const Device last = devices().back();
  const Number source(first);
  const Number target(last);
  const Stream other(last);
  source.set_bytes(compute_stream(first), 4);
  order(compute_stream(first), other);
  target.copy_from(other, source);
  other.synchronize();
  EXPECT_EQ(target.value(), 0x04040404);
}

TEST(Events, AreDoneWhenTheirStreamHasPassedThem) {
  const Device device = devices().front();
  const Event event(device);
  EXPECT_TRUE(event.done());
  const Number number(device);
  number.set_bytes(compute_stream(device), 5);
  event.record(compute_stream(device));
  event.synchronize();
  EXPECT_TRUE(event.done());
  EXPECT_EQ(number.value(), 0x05050505);
}

TEST(Events, TellHowLongTheGpuTookFromOneToTheOther) {
  static constexpr std::chrono::microseconds kWork{3000};
  for (const Device device : devices()) {
    const Event start(device, Event::Purpose::kTiming);
    const Event middle(device, Event::Purpose::kTiming);
    const Event end(device, Event::Purpose::kTiming);
    const Stream& stream = compute_stream(device);
    const CurrentDevice current(device);
    start.record(stream);
    for (const Event* const mark : {&middle, &end}) {
      ASSERT_EQ(cudaLaunchHostFunc(
                    stream.handle(), [](void*) { std::this_thread::sleep_for(kWork); }, nullptr),
                cudaSuccess);
      mark->record(stream);
    }
    end.synchronize();
    const double first = middle.microseconds_since(start);
    const double second = end.microseconds_since(middle);
    EXPECT_GE(first, 0.9 * kWork.count());
    EXPECT_GE(second, 0.9 * kWork.count());
    EXPECT_NEAR(end.microseconds_since(start), first + second, 10);
  }
}

TEST(Events, OfTheOrderAloneTellNoTime) {
  const Device device = devices().front();
  const Event start(device);
  const Event end(device, Event::Purpose::kTiming);
  start.record(compute_stream(device));
  end.record(compute_stream(device));
  end.synchronize();
  EXPECT_THROW(static_cast<void>(end.microseconds_since(start)), Internal);
}

/// What a program may have when its GPU fails, or the process ends.
struct Possessions {
  explicit Possessions(Device device)
      : tensor(Tensor::full({3}, DType::kFloat32, 1, device)),
        pinned(cuda::pinned({3}, DType::kFloat32)),
        stream(device),
        event(device),
        graph(capture(device, [this] { tensor.fill(2); })),
        exported(to_dlpack(tensor, stream.handle())),
        imported(from_dlpack(to_dlpack(tensor, stream.handle()), stream.handle())) {
    event.record(stream);
  }
  ~Possessions() { exported->deleter(exported); }
  Possessions(const Possessions&) = delete;
  Possessions& operator=(const Possessions&) = delete;

  Tensor tensor;
  Tensor pinned;
  Stream stream;
  Event event;
  Graph graph;
  DLManagedTensor* exported;
  Tensor imported;
};

TEST(FailedGpu, IsNamedAndLetsGoOfEverything) {
  auto* const fail = reinterpret_cast<decltype(&gpu_stand_in_fail)>(dlsym(RTLD_DEFAULT, "gpu_stand_in_fail"));
  if (fail == nullptr) GTEST_SKIP() << "only the stand-in fails on request";
  const Device device = devices().back();
  {
    const Possessions possessions(device);
    synchronize(device);
    fail(device.index(), cudaErrorIllegalAddress);
    EXPECT_THAT([&] { possessions.tensor.fill(1); },
                ::testing::ThrowsMessage<Internal>(::testing::HasSubstr("cudaErrorIllegalAddress")));
    EXPECT_THROW(synchronize(device), Internal);
  }
  std::thread([&] { compute_stream(device).drain(); }).join();
  fail(device.index(), cudaSuccess);
  EXPECT_THAT(Tensor::full({3}, DType::kFloat32, 1, device).to(Device()).span<float>(), ::testing::Each(1));
}

// Destroyed after CUDA has shut down, and after what threads have of their own.
std::vector<Tensor> kept;

TEST(EndOfTheProcess, LetsGoOfStaticTensors) {
  const Device device = devices().front();
  kept.push_back(Tensor::full({3}, DType::kFloat32, 1, device));
  kept.push_back(pinned({3}, DType::kFloat32));
  kept.push_back(from_dlpack(to_dlpack(kept.front(), nullptr), nullptr));
  kept.push_back(cohort::from_dlpack(cohort::to_dlpack(kept.front())));
}

}  // namespace
}  // namespace cohort::cuda
