// The few operations on tensors that distribution itself needs: putting pieces
// together and summing along axes. Arithmetic beyond that belongs to the program
// (Eigen, libtorch). On CPU tensors they work on the calling thread.
#pragma once

#include <span>

#include <cohort/device/tensor.h>

namespace cohort {

/// to[i] = from[i], all on one device and of one dtype: for many small tensors.
void copy_each(std::span<const Tensor> from, std::span<const Tensor> to);

/// Concatenates the parts along `axis` (negative counts from the end). Extents along `axis` may differ, and
/// be 0; all others must agree.
/// @throws InvalidArgument for no parts, scalars, or a part that does not fit, naming it.
[[nodiscard]] Tensor concatenate(std::span<const Tensor> parts, int axis);

/// Equal-shaped tensors as the rows of a new one. @throws InvalidArgument when they differ.
[[nodiscard]] Tensor stack_tensors(std::span<const Tensor> rows);

/// The sum along `axes`, which disappear from the shape: float64 for floating dtypes, int64
/// (wrapping) for the others, so that sums of sums lose nothing before they are cast back. On cpu:0.
/// @throws InvalidArgument for an axis out of range or given twice.
[[nodiscard]] Tensor sum_along(const Tensor& tensor, std::span<const int> axes);

}  // namespace cohort
