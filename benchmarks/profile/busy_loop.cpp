#include "profile/busy_loop.h"

#include <algorithm>

namespace cohort::bench {
namespace {

constexpr std::uint64_t kCalibrationRounds = 2000000;
constexpr int kCalibrations = 5;

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

void BusyLoop::run(double microseconds) const {
  compute(static_cast<std::uint64_t>(microseconds * rounds_per_us_));
}

}  // namespace cohort::bench
