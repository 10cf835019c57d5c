#include "scratch_pool.h"

#include <algorithm>
#include <bit>

namespace cohort {

ScratchPool::Scratch ScratchPool::scratch(std::size_t bytes) {
  constexpr std::size_t kSmallest = 4096;
  // Few sizes, so that the memory of one call fits the next.
  const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
  const auto fits = [size](const auto& buffer) { return buffer->bytes() == size; };
  const auto found = std::ranges::find_if(free_, fits);
  if (found == free_.end()) return {*this, allocate(size, Device())};
  std::shared_ptr<const Buffer> buffer = std::move(*found);
  free_.erase(found);
  return {*this, std::move(buffer)};
}

std::shared_ptr<std::byte> ScratchPool::shared_scratch(std::size_t bytes) {
  auto owner = std::make_shared<Scratch>(scratch(bytes));
  std::byte* const data = owner->data();
  return {std::move(owner), data};
}

}  // namespace cohort
