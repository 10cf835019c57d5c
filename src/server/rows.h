// Rows of a tensor to and from one that has them alone. They are on a CPU.
#pragma once

#include <cstdint>
#include <span>

#include <cohort/device/tensor.h>

namespace cohort::server {

/// The given rows, in that order. The caller has seen to it that there are such rows.
[[nodiscard]] Tensor gather_rows(const Tensor& from, std::span<const std::int64_t> rows);

/// Row i of `from` becomes row `rows[i]` of `to`.
void scatter_rows(const Tensor& from, std::span<const std::int64_t> rows, const Tensor& to);

}  // namespace cohort::server
