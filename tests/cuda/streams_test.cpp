#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <cuda_runtime_api.h>

#include <cohort/base/error.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>
#include <cohort/cuda/event.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/tensor.h>

#include "cuda/guard.h"

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
    EXPECT_EQ(communication_stream(device).device(), device);
    EXPECT_NE(compute_stream(device).handle(), communication_stream(device).handle());
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
    source.set_bytes(compute_stream(device), 2);
    order(compute_stream(device), communication_stream(device));
    target.copy_from(communication_stream(device), source);
    order(communication_stream(device), compute_stream(device));
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
  source.set_bytes(compute_stream(first), 4);
  order(compute_stream(first), communication_stream(last));
  target.copy_from(communication_stream(last), source);
  communication_stream(last).synchronize();
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

}  // namespace
}  // namespace cohort::cuda
