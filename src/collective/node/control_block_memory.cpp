#include "control_block_memory.h"

#include <atomic>
#include <cstddef>
#include <new>

#include <cohort/base/error.h>

#include "device/node_heap.h"
#include "node_group.h"

namespace cohort::node {

std::shared_ptr<const Buffer> allocate_block(bool in_heap) {
  constexpr std::size_t kBytes = sizeof(ControlBlock) + alignof(ControlBlock);
  return in_heap ? allocate(kBytes, Device()) : allocate_private(kBytes, Device());
}

ControlBlock* make_control_block(const Buffer& block) {
  void* data = block.data();
  std::size_t space = block.bytes();
  void* aligned = std::align(alignof(ControlBlock), sizeof(ControlBlock), data, space);
  COHORT_CHECK(aligned != nullptr);
  return new (aligned) ControlBlock;
}

std::optional<std::uint64_t> offset_of(const ControlBlock& block) {
  const NodeHeap* heap = NodeHeap::of_this_process();
  return heap == nullptr ? std::nullopt
                         : heap->offset_of(reinterpret_cast<const std::byte*>(&block), sizeof block);
}

NewControlBlock::NewControlBlock(const NodeGroup& parent)
    : block_(allocate_block(parent.blocks_in_heap())), memory_(make_control_block(*block_)) {
  DepartedControlBlocks::of_this_process().sweep();
  const std::optional<std::uint64_t> offset = offset_of(*memory_);
  if (offset || parent.is_one_process())
    location_ = {reinterpret_cast<std::uintptr_t>(memory_), offset ? *offset + 1 : 0};
}

NewControlBlock::~NewControlBlock() {
  if (block_ == nullptr) return;
  memory_->left.store(true, std::memory_order_release);
  NodeGroup::keep_for_ever(std::move(block_));
}

DepartedControlBlocks& DepartedControlBlocks::of_this_process() {
  static auto* const blocks =
      new DepartedControlBlocks;  // other threads may still leave while statics are destroyed
  return *blocks;
}

void DepartedControlBlocks::add(const ControlBlock& memory, int others,
                                std::vector<std::shared_ptr<const void>> blocks) {
  {
    const std::lock_guard lock(mutex_);
    entries_.push_back({&memory, others, std::move(blocks)});
  }
  sweep();
}

void DepartedControlBlocks::keep_for_ever(std::shared_ptr<const void> memory) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(memory));
}

void DepartedControlBlocks::sweep() {
  std::list<Entry> forsaken;  // freed without the lock: it may be users' memory
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (entry->memory->departures.load(std::memory_order_acquire) == entry->others)
      forsaken.splice(forsaken.end(), entries_, entry);
    entry = next;
  }
}

}  // namespace cohort::node
