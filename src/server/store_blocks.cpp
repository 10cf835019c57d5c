#include "server/store_blocks.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include <cohort/base/error.h>

namespace cohort::server {
namespace {

/// The file grows by no less, since each growth asks the system what memory is left.
constexpr std::uint64_t kLeastGrowth = std::uint64_t{1} << 18;

constexpr std::uint64_t block_bytes(std::uint64_t bytes) { return round_up(bytes, kBlockAlignment); }

}  // namespace

StoreBlocks::StoreBlocks(const StoreMapping& mapping, std::vector<Range> used) : mapping_(mapping) {
  std::ranges::sort(used);
  for (const auto& [begin, bytes] : used) {
    if (bytes == 0) continue;
    if (begin < end_)
      throw DataLoss("the memory of a server's variables is damaged: two blocks overlap at byte {}", begin);
    if (begin > end_) add_free(end_, begin - end_);
    end_ = round_up(begin + bytes, kBlockAlignment);
  }
  mapping_.shrink(end_);
  backed_ = end_;
}

std::uint64_t StoreBlocks::allocate(std::uint64_t bytes, std::string_view purpose) {
  const std::uint64_t needed = block_bytes(bytes);
  if (needed < bytes) throw Unavailable("a server's memory is short: {} takes {} bytes", purpose, bytes);
  const auto fit = free_by_size_.lower_bound({needed, 0});
  if (fit == free_by_size_.end()) {
    if (needed > backed_ - end_) grow(needed, purpose);
    return std::exchange(end_, end_ + needed);
  }
  const auto [size, begin] = *fit;
  remove_free(free_.find(begin));
  if (size > needed) add_free(begin + needed, size - needed);
  std::memset(mapping_.base() + begin, 0, needed);
  return begin;
}

void StoreBlocks::release(std::uint64_t begin, std::uint64_t bytes) {
  std::uint64_t size = block_bytes(bytes);
  if (size == 0) return;
  const auto after = free_.lower_bound(begin);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      remove_free(before);
    }
  }
  if (after != free_.end() && begin + size == after->first) {
    size += after->second;
    remove_free(after);
  }
  add_free(begin, size);
}

void StoreBlocks::add_free(std::uint64_t begin, std::uint64_t bytes) {
  free_.emplace(begin, bytes);
  free_by_size_.emplace(bytes, begin);
}

void StoreBlocks::remove_free(std::map<std::uint64_t, std::uint64_t>::iterator free) {
  free_by_size_.erase({free->second, free->first});
  free_.erase(free);
}

void StoreBlocks::grow(std::uint64_t bytes, std::string_view purpose) {
  const std::uint64_t added = std::max(bytes, kLeastGrowth);
  mapping_.back_with_pages(backed_, added, purpose);
  backed_ += added;
}

}  // namespace cohort::server
