// A leaf of a structure that may be dense or sparse: gradients come in both forms, and
// reductions take lists of them in any mixture.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include <cohort/device/tensor.h>
#include <cohort/value/indexed_slices.h>

namespace cohort {

using TensorOrSlices = std::variant<Tensor, IndexedSlices>;

[[nodiscard]] inline bool is_sparse(const TensorOrSlices& leaf) noexcept {
  return std::holds_alternative<IndexedSlices>(leaf);
}

/// The tensor itself, or the values of slices.
[[nodiscard]] inline const Tensor& values_of(const TensorOrSlices& leaf) {
  const auto* slices = std::get_if<IndexedSlices>(&leaf);
  return slices != nullptr ? slices->values : std::get<Tensor>(leaf);
}
[[nodiscard]] inline Tensor values_of(TensorOrSlices&& leaf) { return values_of(std::as_const(leaf)); }

/// The same leaf with other values of the same shape; slices keep their indices.
[[nodiscard]] TensorOrSlices with_values(const TensorOrSlices& leaf, Tensor values);

/// New storage on `device` with the same contents.
[[nodiscard]] TensorOrSlices copy_to(const TensorOrSlices& leaf, Device device);

/// Its description for messages, for example `float32[64, 10]` or `3 rows of float32[100, 8]`.
[[nodiscard]] std::string describe(const TensorOrSlices& leaf);

}  // namespace cohort
