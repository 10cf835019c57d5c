// Asynchronous copies between host and GPU. They need pinned host memory, which the GPU reads and writes by
// itself, at the full speed of the bus. `Tensor::copy_from` and `to` take any memory: they copy through
// pinned memory of Cohort's own, at the cost of one more copy on the host.
#pragma once

#include <cohort/cuda/stream.h>
#include <cohort/device/tensor.h>

namespace cohort::cuda {

/// A CPU tensor in pinned memory, uninitialised. Expensive to make: keep it.
/// @throws Unavailable when there is no GPU, or memory is short.
[[nodiscard]] Tensor pinned(Shape shape, DType dtype);

/// Queues to = from on `stream`, of the GPU that one of them is on. The host must leave both alone until
/// the stream has passed the copy (see event.h). Work that uses the GPU's tensor on another stream, also on
/// the compute stream, has to be ordered with it (see `order`). With ordinary host memory instead of
/// pinned the call may block.
/// @throws InvalidArgument when dtype or shape differ, or neither is on a GPU.
void copy_async(const Tensor& from, const Tensor& to, const Stream& stream);

}  // namespace cohort::cuda
