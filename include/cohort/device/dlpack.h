// Exchange of tensors with other libraries without a copy, through DLPack. Both
// directions share the memory: the tensor that comes out keeps the one that went in
// alive. DLPack knows no bool in the version that Debian ships, so bool tensors travel
// as one-byte unsigned integers and come back as uint8.
#pragma once

#include <dlpack/dlpack.h>

#include <cohort/device/tensor.h>

namespace cohort {

/// A managed tensor that the receiver must release through its `deleter`.
[[nodiscard]] DLManagedTensor* to_dlpack(const Tensor& tensor);

/// Takes ownership of `managed`, also when it throws.
/// @throws InvalidArgument for a null pointer, an element type that Cohort lacks, memory that
/// is not on the CPU, or strides that are not row-major contiguous.
[[nodiscard]] Tensor from_dlpack(DLManagedTensor* managed);

}  // namespace cohort
