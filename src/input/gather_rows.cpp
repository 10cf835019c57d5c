#include <cohort/input/detail/gather_rows.h>

#include <cstddef>
#include <cstring>

namespace cohort::detail {

Tensor gather_rows(const Tensor& tensor, std::span<const std::int64_t> indices) {
  Tensor rows = Tensor::uninitialized(tensor.shape().with(0, static_cast<std::int64_t>(indices.size())),
                                      tensor.dtype(), tensor.device());
  if (rows.bytes() == 0) return rows;
  const std::size_t row_bytes = rows.bytes() / indices.size();
  std::byte* to = rows.data();
  for (const std::int64_t index : indices) {
    std::memcpy(to, tensor.data() + static_cast<std::size_t>(index) * row_bytes, row_bytes);
    to += row_bytes;
  }
  return rows;
}

}  // namespace cohort::detail
