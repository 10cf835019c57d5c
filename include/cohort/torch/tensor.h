// Tensors of libtorch as tensors of Cohort, and back. Both directions share the memory, and keep it alive for
// as long as either is used: what one writes, the other reads.
//
// Shapes stay, and so do dtypes, bool and bfloat16 among them; libtorch's complex and quantized ones have no
// counterpart. Cohort's tensors are row-major, so a tensor with other strides must be made contiguous
// first, which copies it.
//
// GPU memory may be exchanged once its elements are there; see device/dlpack.h.
#pragma once

#include <ATen/Tensor.h>

#include <cohort/device/tensor.h>
#include <cohort/device/tensor_spec.h>

namespace cohort::libtorch {

/// @throws InvalidArgument for a dtype that the other library lacks.
[[nodiscard]] DType to_cohort(at::ScalarType dtype);
[[nodiscard]] at::ScalarType to_torch(DType dtype);

/// The elements of `tensor`, which is detached from its graph.
/// @throws InvalidArgument for an undefined tensor, a sparse one, one with strides that are not row-major
/// (write `to_cohort(tensor.contiguous())` where a copy will do), and a dtype that Cohort lacks.
[[nodiscard]] Tensor to_cohort(const at::Tensor& tensor);

/// A tensor without gradient. @throws InvalidArgument for a dtype that libtorch lacks.
[[nodiscard]] at::Tensor to_torch(const Tensor& tensor);

/// Shape and dtype of `tensor`. @throws InvalidArgument for a dtype that Cohort lacks.
[[nodiscard]] TensorSpec spec_of(const at::Tensor& tensor, std::string name = {});

}  // namespace cohort::libtorch
