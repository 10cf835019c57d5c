#include "memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "stand_in.h"

namespace gpu_stand_in {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr int kFresh = 0xcd;
constexpr int kReleased = 0xdd;

/// Blocks that no test fills are left as they are, for they cost time and memory.
void overwrite(void* block, int byte, std::size_t bytes) {
  constexpr std::size_t kHuge = std::size_t{256} << 20;
  if (bytes < kHuge) std::memset(block, byte, bytes);
}

void* make_block(std::size_t bytes) {
  const std::size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* const block = std::aligned_alloc(kAlignment, size == 0 ? kAlignment : size);
  if (block != nullptr) overwrite(block, kFresh, bytes);
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
  if (bytes > memory_of_each() - used - pools_[device].reserved) return nullptr;
  void* const block = make_block(bytes);
  if (block == nullptr) return nullptr;
  used += bytes;
  blocks_[static_cast<std::byte*>(block)] = {bytes, {.device = device}};
  return block;
}

void* Memory::allocate_from_pool(std::size_t bytes, int device) {
  const std::lock_guard lock(mutex_);
  PoolState& pool = pools_[device];
  if (bytes > memory_of_each() - used_[device] - pool.used) return nullptr;
  void* const block = make_block(bytes);
  if (block == nullptr) return nullptr;
  pool.used += bytes;
  pool.reserved = std::max(pool.reserved, pool.used);
  blocks_[static_cast<std::byte*>(block)] = {bytes, {.device = device, .pool = true}};
  return block;
}

void* Memory::allocate_pinned(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  void* const block = make_block(bytes);
  if (block != nullptr) blocks_[static_cast<std::byte*>(block)] = {bytes, {.pinned = true}};
  return block;
}

bool Memory::release(void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<std::byte*>(block));
  if (found == blocks_.end() || !found->second.own) return false;
  const Place& place = found->second.place;
  if (place.pool)
    pools_[place.device].used -= found->second.bytes;
  else if (!place.pinned)
    used_[place.device] -= found->second.bytes;
  overwrite(block, kReleased, found->second.bytes);
  blocks_.erase(found);
  std::free(block);
  return true;
}

bool Memory::pin(void* data, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return blocks_.try_emplace(static_cast<std::byte*>(data), Block{bytes, {.pinned = true}, false}).second;
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
  const PoolState own = pool(device);
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(device);
  return own.reserved + (found == used_.end() ? 0 : found->second);
}

Memory::PoolState Memory::pool(int device) const {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(device);
  return found == pools_.end() ? PoolState{} : found->second;
}

void Memory::set_threshold(int device, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  pools_[device].threshold = bytes;
}

void Memory::trim_pool(int device) { trim_pool(device, pool(device).threshold); }

void Memory::trim_pool(int device, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  PoolState& pool = pools_[device];
  pool.reserved = std::max(pool.used, std::min(pool.reserved, bytes));
}

void Memory::open_pool(int device, int peer) {
  const std::lock_guard lock(mutex_);
  open_.emplace(device, peer);
}

bool Memory::is_open(int device, int peer) const {
  const std::lock_guard lock(mutex_);
  return device == peer || open_.contains({device, peer});
}

bool Memory::reaches(int device, const void* data) const {
  const std::optional<Place> place = find(data);
  if (!place) return false;
  return place->pinned || !place->pool || is_open(place->device, device);
}

}  // namespace gpu_stand_in
