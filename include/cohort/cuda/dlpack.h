// Exchange of GPU tensors with other libraries through DLPack, without a copy and without waiting: the two
// libraries' streams are ordered instead. The consumer's stream of DLPack's protocol is a `cudaStream_t`; the
// numbers 1 and 2 are CUDA's two default streams.
#pragma once

#include <dlpack/dlpack.h>

#include <cohort/cuda/stream.h>
#include <cohort/device/tensor.h>

namespace cohort::cuda {

/// As cohort::to_dlpack; `consumer`, a stream of the tensor's GPU, waits for what was queued for the tensor.
/// When the receiver releases it, Cohort waits in the same way for `consumer`, which must still exist.
/// @throws InvalidArgument for a CPU tensor.
[[nodiscard]] DLManagedTensor* to_dlpack(const Tensor& tensor, StreamHandle consumer);

/// As cohort::from_dlpack; Cohort's stream waits for what `producer` holds now. Before the memory is
/// released, `producer` waits in the same way for Cohort, so it must still exist then.
/// @throws as cohort::from_dlpack; InvalidArgument for CPU memory.
[[nodiscard]] Tensor from_dlpack(DLManagedTensor* managed, StreamHandle producer);

}  // namespace cohort::cuda
