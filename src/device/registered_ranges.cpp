#include "registered_ranges.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include <cohort/base/error.h>

namespace cohort {
namespace {

std::uintptr_t number_of(const std::byte* data) { return reinterpret_cast<std::uintptr_t>(data); }

}  // namespace

RegisteredRanges& RegisteredRanges::of_this_process() {
  static auto* const ranges = new RegisteredRanges;
  return *ranges;
}

/// The first range that ends beyond `address`.
std::vector<RegisteredRanges::Range>::const_iterator RegisteredRanges::find(std::uintptr_t address) const {
  return std::ranges::upper_bound(ranges_, address, {}, &Range::end);
}

void RegisteredRanges::add(std::span<const std::byte> range) {
  const std::uintptr_t begin = number_of(range.data());
  const std::unique_lock lock(mutex_);
  const auto next = find(begin);
  if (next != ranges_.end() && next->begin < begin + range.size()) {
    throw InvalidArgument("register_memory: {} bytes at {} overlap {} bytes that are registered already",
                          range.size(), static_cast<const void*>(range.data()), next->end - next->begin);
  }
  kept_.reserve(kept_.size() + ranges_.size() + 1);  // so that `keep` cannot fail
  ranges_.insert(next, Range{begin, begin + range.size(), nullptr, nullptr});
  count_.store(ranges_.size(), std::memory_order_relaxed);
}

void RegisteredRanges::set_block(const std::byte* begin, std::shared_ptr<const void> block,
                                 const std::byte* pages) {
  const std::unique_lock lock(mutex_);
  Range& range = ranges_[static_cast<std::size_t>(find(number_of(begin)) - ranges_.begin())];
  range.block = std::move(block);
  range.pages = pages;
}

std::shared_ptr<const void> RegisteredRanges::remove(const std::byte* begin) noexcept {
  const std::unique_lock lock(mutex_);
  const auto found = ranges_.begin() + (find(number_of(begin)) - ranges_.begin());
  std::shared_ptr<const void> block = std::move(found->block);
  ranges_.erase(found);
  count_.store(ranges_.size(), std::memory_order_relaxed);
  return block;
}

void RegisteredRanges::keep(std::shared_ptr<const void> block) noexcept {
  const std::unique_lock lock(mutex_);
  kept_.push_back(std::move(block));
}

const std::byte* RegisteredRanges::in_heap(const std::byte* data, std::size_t bytes) const {
  const std::uintptr_t address = number_of(data);
  const std::shared_lock lock(mutex_);
  const auto range = find(address);
  if (range == ranges_.end() || range->block == nullptr) return nullptr;
  const bool within = range->begin <= address && bytes <= range->end - address;
  return within ? range->pages + (address - range->begin) : nullptr;
}

std::shared_ptr<const void> RegisteredRanges::block_of(const std::byte* data) const {
  const std::shared_lock lock(mutex_);
  const auto range = find(number_of(data));
  return range != ranges_.end() && range->begin <= number_of(data) ? range->block : nullptr;
}

}  // namespace cohort
