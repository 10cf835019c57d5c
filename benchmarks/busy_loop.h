// Computing, as a backward pass does, for a given time: as much of it as was found to take that long. No
// loop looks at a clock while it runs: what disturbs it makes it last longer, as with real work.
#pragma once

#include <cohort/device/tensor.h>

#include "timing.h"

namespace cohort::bench {

/// Arithmetic on this thread's own core.
class BusyLoop {
 public:
  /// Takes some 50 ms. All threads that will compute at once should calibrate at once.
  explicit BusyLoop(const TickClock& clock);

  /// Computes for about `microseconds` when nothing disturbs it.
  void operator()(double microseconds) const;

 private:
  double rounds_per_us_ = 0;
};

/// Kernels that fill a small tensor, queued on the GPU's compute stream. No thread waits for them.
class GpuBusyLoop {
 public:
  /// Takes some milliseconds, in which the GPU should have nothing else to do.
  explicit GpuBusyLoop(Device device);

  /// Queues about `microseconds` of computing. A kernel is not divided: what is left over counts for the
  /// next call.
  void operator()(double microseconds);

 private:
  void fill(int times) const;

  Tensor scratch_;
  double kernels_per_us_ = 0;
  double owed_ = 0;  ///< kernels
};

}  // namespace cohort::bench
