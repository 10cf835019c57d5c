// The node heap is where CPU tensors live: memory of this process that the other processes of its node can
// map, so that collectives read and write tensors where they are. One file without a name (a memfd) backs it,
// sparse and as large as it can ever become; peers map it whole, once, and name an address by the file's
// owner and an offset.
//
// Freed blocks are kept for the next tensor and never go back to the system, because
// fresh pages cost more than most collectives. The kernel takes everything back when
// the last process that maps the file ends, however it ends. Any thread may call; a
// forked child has no access (it would share memory, but not the bookkeeping).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "registered_ranges.h"

namespace cohort {

/// Memory of at least this size begins at a page of it, for the kernel to use one.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

[[nodiscard]] constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

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
                                                   reinterpret_cast<std::uintptr_t>(base_));
    if (offset < bytes_) return offset;
    const std::byte* const pages = registered_.empty() ? nullptr : registered_.in_heap(data, bytes);
    return pages == nullptr ? std::nullopt : std::optional(static_cast<std::uint64_t>(pages - base_));
  }

  [[nodiscard]] std::byte* base() const noexcept { return base_; }

  /// The size of the file and of each mapping of it; most of it never has pages.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

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
  NodeHeap(int descriptor, std::byte* base, std::size_t bytes);
  static NodeHeap* make();

  int descriptor_;
  std::byte* base_;
  std::size_t bytes_;
  std::unique_ptr<Blocks> blocks_;
  const RegisteredRanges& registered_ = RegisteredRanges::of_this_process();
};

}  // namespace cohort
