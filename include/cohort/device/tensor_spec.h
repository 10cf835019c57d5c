// A tensor without its elements: shape, dtype and, for messages, a name. Lists of specs describe the
// gradients of a model before any of them exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <cohort/device/tensor.h>

namespace cohort {

struct TensorSpec {
  Shape shape = {};
  DType dtype = DType::kFloat32;
  std::string name = {};

  [[nodiscard]] std::size_t elements() const noexcept { return shape.elements(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return elements() * size_of(dtype); }
};

[[nodiscard]] inline bool matches(const TensorSpec& spec, const Tensor& tensor) noexcept {
  return spec.dtype == tensor.dtype() && spec.shape == tensor.shape();
}

/// For example `float32[64, 10]`, or `float32[64, 10] 'weights'`.
[[nodiscard]] std::string describe(const TensorSpec& spec);

/// Fingerprint of the shapes and dtypes, in order.
[[nodiscard]] std::uint64_t layout_of(std::span<const TensorSpec> specs);

}  // namespace cohort
