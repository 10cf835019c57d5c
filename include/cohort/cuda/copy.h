// Copies that nobody waits for. Host memory has to be pinned for that: the GPU copies from and
// to it by itself, at the full speed of the bus. `Tensor::copy_from` and `to` need none of this;
// they go by way of pinned memory of Cohort's own, and the host copies once more.
#pragma once

#include <cohort/cuda/stream.h>
#include <cohort/device/tensor.h>

namespace cohort::cuda {

/// A CPU tensor in pinned memory, uninitialised. Dear to make: keep it.
/// @throws Unavailable when there is no GPU, or memory is short.
[[nodiscard]] Tensor pinned(Shape shape, DType dtype);

/// Queues to = from on `stream`, of the GPU that one of them is on. The host must leave both alone until
/// the stream has passed the copy (see event.h). Work that uses the GPU's tensor on another stream, also on
/// the compute stream, has to be ordered with it (see `order`). With ordinary host memory instead of
/// pinned the call may block.
/// @throws InvalidArgument when dtype or shape differ, or neither is on a GPU.
void copy_async(const Tensor& from, const Tensor& to, const Stream& stream);

}  // namespace cohort::cuda
