// A contender's side on a GPU: calls work on tensors there, and are timed by events on the stream that
// orders everything on these tensors, Cohort's compute stream of the GPU. Builds without
// CUDA have none, and no tensor to make one of.
#pragma once

#include <memory>
#include <string>

#include "buffers.h"
#include "off_host.h"

namespace cohort::bench {

/// `buffers` are on a GPU.
[[nodiscard]] std::unique_ptr<const OffHost> make_gpu_side(const Buffers& buffers);

/// The model of a GPU, for the report.
[[nodiscard]] std::string describe_gpu(Device device);

}  // namespace cohort::bench
