// Chosen rows of a tensor.
#pragma once

#include <cstdint>
#include <span>

#include <cohort/device/tensor.h>

namespace cohort::detail {

/// The rows of `tensor` at `indices`, which lie within it, copied into a new tensor.
[[nodiscard]] Tensor gather_rows(const Tensor& tensor, std::span<const std::int64_t> indices);

}  // namespace cohort::detail
