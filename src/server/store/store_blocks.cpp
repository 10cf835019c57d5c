#include "store_blocks.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>

#include <cohort/base/error.h>

namespace cohort::server {
namespace {

/// The file grows by no less, since each growth asks the system what memory is left.
constexpr std::uint64_t kLeastGrowth = std::uint64_t{1} << 18;

constexpr std::uint64_t block_bytes(std::uint64_t bytes) { return round_up(bytes, kBlockAlignment); }

constexpr std::uint64_t kSlotsBegin = offsetof(CommitBlock, slots);

DataLoss damaged(std::string_view what) {
  return DataLoss("the memory of a server's variables is damaged: {}", what);
}

}  // namespace

StoreBlocks::StoreBlocks(const StoreMapping& mapping, std::vector<Range> used) : mapping_(mapping) {
  std::ranges::sort(used, {}, &Range::begin);
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

std::vector<StoreBlocks::Range> StoreCommits::find_blocks() {
  const std::uint64_t file_bytes = mapping_.file_bytes();
  std::vector<StoreBlocks::Range> ranges;
  std::set<std::uint64_t> found;
  std::uint64_t block = mapping_.header().commit_records.load(std::memory_order_acquire);
  while (block != 0) {
    if (block % kBlockAlignment != 0 || !StoreMapping::in_blocks(block, sizeof(CommitBlock), file_bytes))
      throw damaged("its commits lie outside of the file");
    if (!found.insert(block).second) throw damaged("its list of commits goes round in a circle");
    blocks_.push_back(block);
    ranges.push_back({block, sizeof(CommitBlock)});
    block = mapping_.at<CommitBlock>(block).next.load(std::memory_order_acquire);
  }
  return ranges;
}

bool StoreCommits::has_slot(std::uint64_t position) const {
  return std::ranges::any_of(blocks_, [&](std::uint64_t block) {
    return position >= block + kSlotsBegin && position < block + sizeof(CommitBlock) &&
           (position - block - kSlotsBegin) % sizeof(CommitSlot) == 0;
  });
}

std::vector<StoreBlocks::Range> StoreCommits::read_records() {
  const std::uint64_t file_bytes = mapping_.file_bytes();
  std::vector<StoreBlocks::Range> results;
  for (const std::uint64_t block : blocks_) {
    for (std::uint64_t position = block + kSlotsBegin; position < block + sizeof(CommitBlock);
         position += sizeof(CommitSlot)) {
      const CommitSlot& read = slot(position);
      switch (read.state.load(std::memory_order_acquire)) {
        case CommitSlotState::kFree: free_slots_.push_back(position); continue;
        case CommitSlotState::kFenced: fenced_.insert(read.incarnation); continue;
        case CommitSlotState::kCommitted: break;
        default: throw damaged("a commit of no known state");
      }
      if (read.result_bytes != 0) {
        if (read.result % kBlockAlignment != 0 ||
            !StoreMapping::in_blocks(read.result, read.result_bytes, file_bytes))
          throw damaged("the result of a commit lies outside of the file");
        results.push_back({read.result, read.result_bytes});
      }
      if (!commits_.emplace(Execution{read.incarnation, read.number}, position).second)
        throw damaged("an execution was committed twice");
    }
  }
  return results;
}

std::uint64_t StoreCommits::prepare(StoreBlocks& blocks, const Execution& execution,
                                    std::span<const std::byte> result) {
  const std::uint64_t copy = result.empty() ? 0 : blocks.allocate(result.size(), "the result of a function");
  std::uint64_t position = 0;
  try {
    position = take_slot(blocks);
  } catch (const Unavailable&) {
    blocks.release(copy, result.size());
    throw;
  }
  if (!result.empty()) std::memcpy(mapping_.base() + copy, result.data(), result.size());
  CommitSlot& prepared = slot(position);
  prepared.incarnation = execution.incarnation;
  prepared.number = execution.number;
  prepared.result = copy;
  prepared.result_bytes = result.size();
  return position;
}

void StoreCommits::publish(std::uint64_t position) {
  publish_unread(position);
  const CommitSlot& published = slot(position);
  commits_.emplace(Execution{published.incarnation, published.number}, position);
}

void StoreCommits::publish_unread(std::uint64_t position) {
  slot(position).state.store(CommitSlotState::kCommitted, std::memory_order_release);
}

CommitRecord StoreCommits::record(const Execution& execution, std::uint64_t position) const {
  const CommitSlot& read = slot(position);
  const std::byte* const result = mapping_.base() + read.result;
  return {execution, {result, result + read.result_bytes}};
}

std::optional<CommitRecord> StoreCommits::find(const Execution& execution) const {
  const auto found = commits_.find(execution);
  if (found == commits_.end()) return std::nullopt;
  return record(execution, found->second);
}

std::vector<CommitRecord> StoreCommits::of(std::uint64_t incarnation) const {
  std::vector<CommitRecord> records;
  for (auto at = commits_.lower_bound({incarnation, 0});
       at != commits_.end() && at->first.incarnation == incarnation; ++at) {
    records.push_back(record(at->first, at->second));
  }
  return records;
}

void StoreCommits::forget(StoreBlocks& blocks, std::uint64_t incarnation, std::uint64_t number) {
  const auto first = commits_.lower_bound({incarnation, 0});
  const auto last = commits_.upper_bound({incarnation, number});
  for (auto at = first; at != last; ++at) {
    CommitSlot& forgotten = slot(at->second);
    forgotten.state.store(CommitSlotState::kFree, std::memory_order_release);
    keep_order();  // its memory may be used again
    blocks.release(forgotten.result, forgotten.result_bytes);
    free_slots_.push_back(at->second);
  }
  commits_.erase(first, last);
}

void StoreCommits::fence(StoreBlocks& blocks, std::uint64_t incarnation) {
  if (is_fenced(incarnation)) return;
  CommitSlot& fence = slot(take_slot(blocks));
  fence.incarnation = incarnation;
  fence.state.store(CommitSlotState::kFenced, std::memory_order_release);
  fenced_.insert(incarnation);
}

std::uint64_t StoreCommits::take_slot(StoreBlocks& blocks) {
  if (free_slots_.empty()) {
    const std::uint64_t block = blocks.allocate(sizeof(CommitBlock), "the list of commits");
    // Zeros are a complete block, of free slots.
    std::atomic<std::uint64_t>& next =
        blocks_.empty() ? mapping_.header().commit_records : mapping_.at<CommitBlock>(blocks_.back()).next;
    next.store(block, std::memory_order_release);
    blocks_.push_back(block);
    for (std::uint64_t position = block + kSlotsBegin; position < block + sizeof(CommitBlock);
         position += sizeof(CommitSlot)) {
      free_slots_.push_back(position);
    }
  }
  const std::uint64_t position = free_slots_.back();
  free_slots_.pop_back();
  return position;
}

}  // namespace cohort::server
