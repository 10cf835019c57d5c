// The program's spans as ranges of NVTX, which profilers for GPUs show beside its kernels.
#pragma once

namespace cohort::cuda {

/// From here on, if a profiler has started this process: it names its library in NVTX_INJECTION64_PATH.
void pass_spans_to_nvtx() noexcept;

}  // namespace cohort::cuda
