#include "scratch_pool.h"

#include <algorithm>
#include <iterator>

namespace cohort {

ScratchPool::Scratch ScratchPool::scratch(std::size_t bytes) {
  constexpr std::size_t kSmallest = 4096;
  // Few sizes, so that the memory of one call fits the next.
  const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
  Buffers& free = free_of(size);
  if (bytes > longest_of_its_own_) {
    if (free.empty()) free.push_back(allocate(size, Device()));
    return Scratch(free.front());
  }
  if (free.empty()) return {*this, allocate(size, Device())};
  // The latest one, which may still be in the processor's cache.
  std::shared_ptr<const Buffer> buffer = std::move(free.back());
  free.pop_back();
  return {*this, std::move(buffer)};
}

std::vector<std::shared_ptr<const Buffer>> ScratchPool::take() {
  Buffers all;
  for (Buffers& buffers : free_) {
    std::ranges::move(buffers, std::back_inserter(all));
    buffers.clear();
  }
  return all;
}

std::shared_ptr<std::byte> ScratchPool::shared_scratch(std::size_t bytes) {
  auto owner = std::make_shared<Scratch>(scratch(bytes));
  std::byte* const data = owner->data();
  return {std::move(owner), data};
}

}  // namespace cohort
