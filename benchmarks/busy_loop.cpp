#include "busy_loop.h"

#include <algorithm>

#include "gpu/gpu_side.h"

namespace cohort::bench {
namespace {

constexpr int kCalibrations = 5;
constexpr std::uint64_t kCalibrationRounds = 2000000;
constexpr int kCalibrationKernels = 200;
constexpr std::int64_t kElements = 1 << 16;

/// Each round needs the result of the one before, so its time is the processor's latency of two operations.
void compute(std::uint64_t rounds) {
  double value = 1;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    value = value * 0.999999 + 1e-6;
    __asm__ volatile("" : "+x"(value));  // or the compiler would see that nobody wants the value
  }
}

}  // namespace

BusyLoop::BusyLoop(const TickClock& clock) {
  for (int calibration = 0; calibration < kCalibrations; ++calibration) {
    const std::uint64_t before = clock.now();
    compute(kCalibrationRounds);
    const double us = clock.microseconds(clock.now() - before);
    rounds_per_us_ = std::max(rounds_per_us_, static_cast<double>(kCalibrationRounds) / us);
  }
}

void BusyLoop::operator()(double microseconds) const {
  compute(static_cast<std::uint64_t>(microseconds * rounds_per_us_));
}

GpuBusyLoop::GpuBusyLoop(Device device)
    : scratch_(Tensor::uninitialized({kElements}, DType::kFloat32, device)) {
  const auto gpu = make_gpu_side({{scratch_, {}}}, {});
  for (int calibration = 0; calibration < kCalibrations; ++calibration) {
    constexpr double kMicrosecondsPerNanosecond = 1e-3;
    const std::uint64_t nanoseconds = gpu->time([this] { fill(kCalibrationKernels); }, {});
    const double us = std::max(kMicrosecondsPerNanosecond * static_cast<double>(nanoseconds), 1.0);
    kernels_per_us_ = std::max(kernels_per_us_, kCalibrationKernels / us);
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
