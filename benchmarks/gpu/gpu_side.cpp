#include "gpu/gpu_side.h"

#include <cmath>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/cuda/devices.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/device.h>

namespace cohort::bench {
namespace {

class GpuSide final : public OffHost {
 public:
  GpuSide(std::vector<GpuTensor> inputs, std::vector<GpuTensor> outputs)
      : inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        stream_(cuda::compute_stream(inputs_.front().there.device())),
        start_(stream_.device(), cuda::Event::Purpose::kTiming),
        end_(stream_.device(), cuda::Event::Purpose::kTiming) {}

  void bring() const override {
    for (const GpuTensor& input : inputs_) input.there.copy_from(input.host);
    // Otherwise the copy would hide what the host does at the start of a call.
    stream_.synchronize();
  }

  [[nodiscard]] std::uint64_t time(const std::function<void()>& call,
                                   const std::optional<CallLimit>& limit) const override {
    constexpr double kNanosecondsPerMicrosecond = 1000;
    start_.record(stream_);
    call();
    end_.record(stream_);
    if (limit) wait_for_end(*limit);
    end_.synchronize();
    return static_cast<std::uint64_t>(
        std::llround(end_.microseconds_since(start_) * kNanosecondsPerMicrosecond));
  }

  void fetch() const override {
    for (const GpuTensor& output : outputs_) output.host.copy_from(output.there);
  }

 private:
  void wait_for_end(const CallLimit& limit) const {
    const Deadline deadline = Deadline::after(std::chrono::duration<double>(limit.seconds));
    while (!end_.done()) {
      if (deadline.expired())
        throw DeadlineExceeded("{} has not ended after {:g} s", limit.call, limit.seconds);
      std::this_thread::yield();
    }
  }

  std::vector<GpuTensor> inputs_;
  std::vector<GpuTensor> outputs_;
  const cuda::Stream& stream_;
  cuda::Event start_;
  cuda::Event end_;
};

}  // namespace

std::unique_ptr<const OffHost> make_gpu_side(std::vector<GpuTensor> inputs, std::vector<GpuTensor> outputs) {
  return std::make_unique<const GpuSide>(std::move(inputs), std::move(outputs));
}

std::string describe_gpu(Device device) {
  const cuda::DeviceProperties properties = cuda::properties(device);
  return fmt::format("{}, compute capability {}.{}", properties.name, properties.major, properties.minor);
}

}  // namespace cohort::bench
