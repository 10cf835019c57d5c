#include "server/rows.h"

#include <algorithm>
#include <cstddef>

namespace cohort::server {
namespace {

/// Of a tensor with at least one row.
std::size_t row_bytes(const Tensor& tensor) {
  return tensor.bytes() / static_cast<std::size_t>(tensor.shape()[0]);
}

}  // namespace

Tensor gather_rows(const Tensor& from, std::span<const std::int64_t> rows) {
  Tensor result =
      Tensor::uninitialized(from.shape().with(0, static_cast<std::int64_t>(rows.size())), from.dtype());
  if (rows.empty()) return result;
  const std::size_t bytes = row_bytes(from);
  std::byte* to = result.data();
  for (const std::int64_t row : rows)
    to = std::copy_n(from.data() + static_cast<std::size_t>(row) * bytes, bytes, to);
  return result;
}

void scatter_rows(const Tensor& from, std::span<const std::int64_t> rows, const Tensor& to) {
  if (rows.empty()) return;
  const std::size_t bytes = row_bytes(from);
  const std::byte* next = from.data();
  for (const std::int64_t row : rows) {
    std::copy_n(next, bytes, to.data() + static_cast<std::size_t>(row) * bytes);
    next += bytes;
  }
}

}  // namespace cohort::server
