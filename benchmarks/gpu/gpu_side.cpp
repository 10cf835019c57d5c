#include "gpu/gpu_side.h"

#include <cmath>

#include <fmt/format.h>

#include <cohort/cuda/devices.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/device_runtime.h>

namespace cohort::bench {
namespace {

class GpuSide final : public OffHost {
 public:
  explicit GpuSide(const Buffers& buffers)
      : buffers_{buffers.input, buffers.output, buffers.host_input, buffers.host_output, {}},
        stream_(cuda::compute_stream(buffers.input.device())),
        start_(stream_.device(), cuda::Event::Purpose::kTiming),
        end_(stream_.device(), cuda::Event::Purpose::kTiming) {}

  void bring() const override {
    buffers_.input.copy_from(buffers_.host_input);
    // Otherwise the copy would hide what the host does at the start of a call.
    stream_.synchronize();
  }

  [[nodiscard]] std::uint64_t time(const std::function<void()>& call) const override {
    constexpr double kNanosecondsPerMicrosecond = 1000;
    start_.record(stream_);
    call();
    end_.record(stream_);
    end_.synchronize();
    return static_cast<std::uint64_t>(
        std::llround(end_.microseconds_since(start_) * kNanosecondsPerMicrosecond));
  }

  void fetch() const override { buffers_.host_output.copy_from(buffers_.output); }

 private:
  Buffers buffers_;
  const cuda::Stream& stream_;
  cuda::Event start_;
  cuda::Event end_;
};

}  // namespace

std::unique_ptr<const OffHost> make_gpu_side(const Buffers& buffers) {
  return std::make_unique<const GpuSide>(buffers);
}

std::string describe_gpu(Device device) {
  const cuda::DeviceProperties properties = cuda::properties(device);
  return fmt::format("{}, compute capability {}.{}", properties.name, properties.major, properties.minor);
}

}  // namespace cohort::bench
