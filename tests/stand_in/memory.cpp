#include "memory.h"

#include <cstdlib>
#include <cstring>

#include "stand_in.h"

namespace gpu_stand_in {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr int kFresh = 0xcd;
constexpr int kReleased = 0xdd;

void* make_block(std::size_t bytes) {
  const std::size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* const block = std::aligned_alloc(kAlignment, size == 0 ? kAlignment : size);
  if (block != nullptr) std::memset(block, kFresh, bytes);
  return block;
}

}  // namespace

Memory& Memory::of_this_process() {
  static Memory& instance = *new Memory;
  return instance;
}

void* Memory::allocate(std::size_t bytes, int device) {
  const std::lock_guard lock(mutex_);
  std::size_t& used = used_[device];
  if (bytes > memory_of_each() - used) return nullptr;
  void* const block = make_block(bytes);
  if (block == nullptr) return nullptr;
  used += bytes;
  blocks_[static_cast<std::byte*>(block)] = {bytes, {false, device}};
  return block;
}

void* Memory::allocate_pinned(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  void* const block = make_block(bytes);
  if (block != nullptr) blocks_[static_cast<std::byte*>(block)] = {bytes, {true, -1}};
  return block;
}

bool Memory::release(void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<std::byte*>(block));
  if (found == blocks_.end() || !found->second.own) return false;
  if (!found->second.place.pinned) used_[found->second.place.device] -= found->second.bytes;
  std::memset(block, kReleased, found->second.bytes);
  blocks_.erase(found);
  std::free(block);
  return true;
}

bool Memory::pin(void* data, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return blocks_.try_emplace(static_cast<std::byte*>(data), Block{bytes, {true, -1}, false}).second;
}

bool Memory::unpin(void* data) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<std::byte*>(data));
  if (found == blocks_.end() || found->second.own) return false;
  blocks_.erase(found);
  return true;
}

std::optional<Memory::Place> Memory::find(const void* data) const {
  const std::lock_guard lock(mutex_);
  const auto* const address = static_cast<const std::byte*>(data);
  const auto before = blocks_.lower_bound(address);
  if (before == blocks_.end() || address >= before->first + before->second.bytes) return std::nullopt;
  return before->second.place;
}

std::size_t Memory::used(int device) const {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(device);
  return found == used_.end() ? 0 : found->second;
}

}  // namespace gpu_stand_in
