// Calls on tensors on a GPU, timed by events on the stream that orders all work on these tensors: Cohort's
// compute stream of that GPU. Builds without CUDA have no such tensors, and never come to this.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <cohort/device/tensor.h>

#include "harness.h"

namespace cohort::bench {

/// A tensor on a GPU, and the one on the host that goes there or comes from it.
struct GpuTensor {
  Tensor there;
  Tensor host;
};

/// All tensors are on one GPU, and there is at least one. In place, inputs and outputs name the same memory.
[[nodiscard]] std::unique_ptr<const OffHost> make_gpu_side(std::vector<GpuTensor> inputs,
                                                           std::vector<GpuTensor> outputs);

/// The model of a GPU, for the report.
[[nodiscard]] std::string describe_gpu(Device device);

}  // namespace cohort::bench
