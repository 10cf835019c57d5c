// The node heap is where CPU tensors live: memory of this process that the other processes of its node can
// map, so that collectives read and write tensors where they are. One file without a name (a memfd) backs it,
// sparse and as large as it can ever become; peers map it whole, once, and name an address by the file's
// owner and an offset.
//
// Freed blocks are kept for the next tensor and never go back to the system, because
// fresh pages cost more than most collectives. The kernel takes everything back when
// the last process that maps the file ends, however it ends. Any thread may call; a
// forked child has no access (it would share memory, but not the bookkeeping).
//
// Memory that a program registers gets pages of the heap as well; RegisteredRanges knows it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "base/system_calls.h"

namespace cohort {

/// Memory of at least this size begins at a page of it, for the kernel to use one.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

[[nodiscard]] constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// The ranges that are registered (memory_registration.h), and the blocks of the node heap that back them, by
/// which collectives recognise such memory. Any thread may call.
class RegisteredRanges {
 public:
  /// Never destroyed: registrations may be static.
  [[nodiscard]] static RegisteredRanges& of_this_process();

  RegisteredRanges(const RegisteredRanges&) = delete;
  RegisteredRanges& operator=(const RegisteredRanges&) = delete;

  /// Costs one read of a counter that hardly ever changes.
  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  /// Adds a range without a block. @throws InvalidArgument when it overlaps another.
  void add(std::span<const std::byte> range);

  /// Says that the range at `begin` is backed by `block` from now on, whose pages begin at `pages`.
  void set_block(const std::byte* begin, std::shared_ptr<const void> block, const std::byte* pages);

  /// Removes the range. Returns its block, null when it has none.
  [[nodiscard]] std::shared_ptr<const void> remove(const std::byte* begin) noexcept;

  /// Keeps the block of a removed range for ever, because it is still in use or backs other pages.
  void keep(std::shared_ptr<const void> block) noexcept;

  /// The heap's address of the `bytes` at `data`; null when they are not all in one range with a block.
  [[nodiscard]] const std::byte* in_heap(const std::byte* data, std::size_t bytes) const;

  /// Shared ownership of the block that backs `data`, for calls in flight; null when there is none.
  [[nodiscard]] std::shared_ptr<const void> block_of(const std::byte* data) const;

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::shared_ptr<const void> block;
    const std::byte* pages = nullptr;
  };

  RegisteredRanges() = default;
  [[nodiscard]] std::vector<Range>::const_iterator find(std::uintptr_t address) const;

  mutable std::shared_mutex mutex_;
  std::vector<Range> ranges_;  ///< by address
  std::vector<std::shared_ptr<const void>> kept_;
  std::atomic<std::size_t> count_{0};
};

class NodeHeap {
 public:
  /// This process's heap, made on first use and never destroyed: tensors may be static. Null
  /// where the system refuses shared memory, or with COHORT_NODE_HEAP=false.
  [[nodiscard]] static NodeHeap* of_this_process();

  ~NodeHeap();
  NodeHeap(const NodeHeap&) = delete;
  NodeHeap& operator=(const NodeHeap&) = delete;

  /// A block of at least `bytes`, aligned to a cache line, or to a huge page if it has 2 MiB or more. Null
  /// when memory is short: growing would exceed what the system or its limits have left.
  [[nodiscard]] std::byte* allocate(std::size_t bytes);

  /// Takes back what `allocate(bytes)` returned.
  void release(std::byte* block, std::size_t bytes) noexcept;

  /// Where the `bytes` at `data` lie in the file; nothing for memory from elsewhere. A range that was
  /// registered (memory_registration.h) lies there too.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(const std::byte* data, std::size_t bytes) const {
    // One comparison: addresses below the base wrap around to large numbers.
    const auto offset = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data) -
                                                   reinterpret_cast<std::uintptr_t>(base()));
    if (offset < mapping_.bytes()) return offset;
    const std::byte* const pages = registered_.empty() ? nullptr : registered_.in_heap(data, bytes);
    return pages == nullptr ? std::nullopt : std::optional(static_cast<std::uint64_t>(pages - base()));
  }

  [[nodiscard]] std::byte* base() const noexcept { return mapping_.data(); }

  /// The size of the file and of each mapping of it; most of it never has pages.
  [[nodiscard]] std::size_t bytes() const noexcept { return mapping_.bytes(); }

  /// So many processes map it and have heaps like it; a warning says if their page tables become large.
  void warn_of_page_tables(int processes);

  /// The file, for handing to a process of the same node.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  struct Statistics {
    std::size_t backed_bytes = 0;  ///< bytes that have pages
    std::size_t used_bytes = 0;    ///< bytes in blocks that are handed out
    std::size_t growths = 0;       ///< times that pages were added: constant in a steady training loop
  };
  [[nodiscard]] Statistics statistics() const;

 private:
  class Blocks;
  NodeHeap(int descriptor, MappedRange mapping);
  static NodeHeap* make();

  int descriptor_;
  MappedRange mapping_;
  std::unique_ptr<Blocks> blocks_;
  const RegisteredRanges& registered_ = RegisteredRanges::of_this_process();
};

/// What page tables cost where the processes of a node map each other's heaps: each of them has its own ones
/// for all heaps, 8 bytes for each page of 4 KiB that it uses, and next to nothing for huge pages. Returns
/// what to say where each of a node's processes has so many bytes of its heap in small pages; nothing where
/// the tables take less than a hundredth of the heaps, or less than 256 MiB.
[[nodiscard]] std::optional<std::string> page_table_warning(std::size_t bytes_in_small_pages, int processes);

}  // namespace cohort
