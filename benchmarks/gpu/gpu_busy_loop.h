// Computing on a GPU, as a backward pass does, for a given time: kernels that fill a small tensor, queued on
// the compute stream, so many as were found to take that long. No thread waits for them.
#pragma once

#include <cohort/device/tensor.h>

namespace cohort::bench {

class GpuBusyLoop {
 public:
  /// Takes some milliseconds, in which the GPU should have nothing else to do.
  explicit GpuBusyLoop(Device device);

  /// Queues about `microseconds` of computing. A kernel is not divided: what is left over counts for the next
  /// call.
  void operator()(double microseconds);

 private:
  void fill(int times) const;

  Tensor scratch_;
  double kernels_per_us_ = 0;
  double owed_ = 0;  ///< kernels
};

}  // namespace cohort::bench
