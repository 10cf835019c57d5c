#include "foreign_elements.h"

#include <algorithm>

#include <cohort/base/error.h>

namespace cohort::detail {

void swap_bytes(const Tensor& tensor) {
  const std::span<std::byte> bytes = tensor.raw();
  const std::size_t size = size_of(tensor.dtype());
  for (std::size_t at = 0; at < bytes.size(); at += size)
    std::reverse(bytes.data() + at, bytes.data() + at + size);
}

void require_valid_elements(const Tensor& tensor, const std::string& path, std::uint64_t offset) {
  if (tensor.dtype() != DType::kBool) return;
  const std::span<const std::byte> bytes = tensor.raw();
  const auto wrong = std::ranges::find_if(bytes, [](std::byte byte) { return byte > std::byte{1}; });
  if (wrong == bytes.end()) return;
  throw DataLoss("{}: byte {} is {}, and a bool is 0 or 1; read the array as uint8, or write it again", path,
                 offset + static_cast<std::uint64_t>(wrong - bytes.begin()), static_cast<int>(*wrong));
}

}  // namespace cohort::detail
