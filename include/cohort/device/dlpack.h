// Exchange of tensors with other libraries without a copy, through DLPack. Both
// directions share the memory: the tensor that comes out keeps the one that went in
// alive. DLPack knows no bool in the version that Debian ships, so bool tensors travel
// as one-byte unsigned integers and come back as uint8; bools of libraries with a newer
// version are taken as bool.
#pragma once

#include <functional>

#include <dlpack/dlpack.h>

#include <cohort/device/tensor.h>

namespace cohort {

/// A managed tensor that the receiver must release through its `deleter`. For a tensor on a GPU the call
/// waits for what is queued for it; cuda/dlpack.h has forms that order streams instead.
[[nodiscard]] DLManagedTensor* to_dlpack(const Tensor& tensor);

/// Takes ownership of `managed`, even when it throws. GPU memory must hold its elements already; it is
/// released when the GPU has done the work queued for it.
/// @throws InvalidArgument for a null pointer, an element type that Cohort lacks, memory that is neither
/// on the CPU nor on a GPU of this program, or strides that are not row-major contiguous.
[[nodiscard]] Tensor from_dlpack(DLManagedTensor* managed);

namespace detail {

/// Without waiting; `release` is called before the tensor is released.
[[nodiscard]] DLManagedTensor* export_dlpack(const Tensor& tensor, std::function<void()> release);
[[nodiscard]] Tensor import_dlpack(DLManagedTensor* managed, std::function<void()> release);

}  // namespace detail

}  // namespace cohort
