// The memory of control blocks. Those of this process are blocks of its heap. A member that leaves increments
// a counter in the control block of every other; a block is given back to the heap once all others have
// stopped looking at it.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/device/allocator.h>

#include "control_block.h"

namespace cohort::node {

class NodeGroup;

/// Of the heap, or of this process alone.
[[nodiscard]] std::shared_ptr<const Buffer> allocate_block(bool in_heap);

/// The block is aligned by hand: the heap promises cache lines, a control block needs pages.
[[nodiscard]] ControlBlock* make_control_block(const Buffer& block);

/// Where the control block lies in this process's heap.
[[nodiscard]] std::optional<std::uint64_t> offset_of(const ControlBlock& block);

/// The control block that a member contributes to a group that is being split off. If the split fails, the
/// block is leaked and marked as left, since others may already be reading it.
class NewControlBlock {
 public:
  /// In memory of the kind that those of `parent` lie in.
  explicit NewControlBlock(const NodeGroup& parent);
  NewControlBlock(NewControlBlock&&) noexcept = default;
  NewControlBlock& operator=(NewControlBlock&&) = delete;
  NewControlBlock(const NewControlBlock&) = delete;
  NewControlBlock& operator=(const NewControlBlock&) = delete;
  ~NewControlBlock();

  /// For the others: its address in this process, and its offset in the heap plus 1; twice 0 when they
  /// could not reach it.
  [[nodiscard]] const std::array<std::uint64_t, 2>& location() const noexcept { return location_; }

  [[nodiscard]] std::shared_ptr<const Buffer> take() noexcept { return std::move(block_); }

 private:
  std::shared_ptr<const Buffer> block_;
  ControlBlock* memory_;
  std::array<std::uint64_t, 2> location_{};
};

/// Control blocks that their members have left, while others may still look at them.
class DepartedControlBlocks {
 public:
  static DepartedControlBlocks& of_this_process();

  /// `blocks`: what is kept until all `others` have departed.
  void add(const ControlBlock& memory, int others, std::vector<std::shared_ptr<const void>> blocks);
  void keep_for_ever(std::shared_ptr<const void> memory);
  /// Frees what nobody looks at any more.
  void sweep();

 private:
  struct Entry {
    const ControlBlock* memory;
    int others;
    std::vector<std::shared_ptr<const void>> blocks;  ///< what is kept until the others have departed
  };

  std::mutex mutex_;
  std::list<Entry> entries_;
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace cohort::node
