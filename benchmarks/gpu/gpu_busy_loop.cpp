#include "gpu/gpu_busy_loop.h"

#include <algorithm>

#include "gpu/gpu_side.h"

namespace cohort::bench {
namespace {

constexpr std::int64_t kElements = 1 << 16;
constexpr int kKernels = 200;
constexpr int kCalibrations = 5;

}  // namespace

GpuBusyLoop::GpuBusyLoop(Device device)
    : scratch_(Tensor::uninitialized({kElements}, DType::kFloat32, device)) {
  const auto gpu = make_gpu_side({{scratch_, {}}}, {});
  for (int calibration = 0; calibration < kCalibrations; ++calibration) {
    constexpr double kMicrosecondsPerNanosecond = 1e-3;
    const std::uint64_t nanoseconds = gpu->time([this] { fill(kKernels); }, {});
    const double us = std::max(kMicrosecondsPerNanosecond * static_cast<double>(nanoseconds), 1.0);
    kernels_per_us_ = std::max(kernels_per_us_, kKernels / us);
  }
}

void GpuBusyLoop::operator()(double microseconds) {
  owed_ += microseconds * kernels_per_us_;
  const auto whole = static_cast<int>(owed_);
  fill(whole);
  owed_ -= whole;
}

void GpuBusyLoop::fill(int times) const {
  for (int i = 0; i < times; ++i) scratch_.fill(i);
}

}  // namespace cohort::bench
