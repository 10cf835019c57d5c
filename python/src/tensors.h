// PyTorch's tensors as Cohort's: the same memory, seen as one row of elements.
#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <cohort/device/tensor.h>

namespace cohort::pytorch {

/// The elements of a tensor on a CPU whose strides are row-major, for calls that compute with them: complex
/// numbers are pairs. @throws c10::TypeError for dtypes that Cohort has no arithmetic for.
[[nodiscard]] Tensor numbers_of(const at::Tensor& tensor);

/// The same for calls that only move them: of any dtype, as bytes where Cohort does not know it.
[[nodiscard]] Tensor contents_of(const at::Tensor& tensor);

/// `count` elements from `offset` on.
[[nodiscard]] Tensor part_of(const Tensor& row, std::size_t offset, std::size_t count);

/// A row-major tensor with the elements of `tensor`: itself, or a copy.
[[nodiscard]] inline at::Tensor row_major(const at::Tensor& tensor) { return tensor.contiguous(); }

/// Row-major memory for a result that belongs to `tensor`: itself where that is row-major.
[[nodiscard]] at::Tensor row_major_result(const at::Tensor& tensor);

/// Copies the result to where it belongs, if it lies elsewhere.
void put_into(const at::Tensor& tensor, const at::Tensor& result);

/// An uninitialised row-major tensor of so many elements in the memory that the ranks of a host share.
[[nodiscard]] at::Tensor scratch(std::int64_t elements, const at::Tensor& like);

[[nodiscard]] std::int64_t total_elements(std::span<const at::Tensor> tensors);

/// Tensors one after the other as one: their own memory where they lie like that, otherwise scratch memory.
[[nodiscard]] at::Tensor room_for(std::span<const at::Tensor> tensors);
void pack(std::span<const at::Tensor> tensors, const at::Tensor& row);
void unpack(const at::Tensor& row, std::span<const at::Tensor> tensors);

}  // namespace cohort::pytorch
