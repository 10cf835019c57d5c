#include "node_heap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "memory_limits.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, bytes) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes) static_cast<void>(0)
#endif

// Linux 5.14 and 6.1; older C libraries do not name them.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

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

std::optional<std::string> page_table_warning(std::size_t bytes_in_small_pages, int processes) {
  constexpr double kMostOfHeaps = 0.01;
  constexpr double kFewBytes = 256.0 * (1 << 20);
  static const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  const double heaps = static_cast<double>(bytes_in_small_pages) * processes;
  const double tables = heaps / page * sizeof(void*) * processes;
  if (tables <= kMostOfHeaps * heaps || tables < kFewBytes) return std::nullopt;
  return fmt::format(
      "the {} processes of this node may need {:.1f} GiB of page tables for their heaps of {:.1f} GiB, which "
      "have "
      "no huge pages: set COHORT_HUGE_PAGES=true on Linux 6.1 or later with transparent huge pages, or start "
      "fewer processes with several threads each",
      processes, tables / (1 << 30), heaps / (1 << 30));
}

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kLargestGrowth = std::size_t{64} << 20;
constexpr std::size_t kLargestFile = std::size_t{64} << 30;

/// Block sizes: four steps per doubling, so that at most a fifth of a block is unused. From a huge
/// page on they are multiples of one, and begin at one.
struct SizeClass {
  std::size_t index;
  std::size_t bytes;
};

constexpr SizeClass size_class(std::size_t bytes) {
  const std::size_t lines = std::max<std::size_t>(round_up(bytes, kLine) / kLine, 1);
  if (lines <= 4) return {lines - 1, lines * kLine};
  const auto exponent = static_cast<std::size_t>(std::bit_width(lines - 1)) - 3;  // steps of 2^exponent lines
  const std::size_t step = (lines - 1) >> exponent;                               // 4 to 7
  const std::size_t block = (step + 1) * (kLine << exponent);
  return {4 + exponent * 4 + (step - 4), block < kHugePage ? block : round_up(block, kHugePage)};
}

constexpr std::size_t kSizeClasses = size_class(kLargestFile).index + 1;

/// Gives a range its pages; whether these are huge. Each first touch happens here, on the thread that asked
/// for memory, so that the pages lie near its core.
bool back_with_pages(std::byte* begin, std::size_t bytes) {
  if (config().huge_pages()) {
    // Collapsing takes pages that exist, so one per huge page is touched first.
    for (std::size_t at = 0; at < bytes; at += kHugePage) begin[at] = std::byte{0};
    if (madvise(begin, bytes, MADV_COLLAPSE) == 0) return true;
  }
  // Where the kernel knows neither, pages come one by one as they are used.
  static_cast<void>(madvise(begin, bytes, MADV_POPULATE_WRITE));
  return false;
}

}  // namespace

/// Which parts of the file are in use. Small blocks are cut from huge pages, one after the other.
class NodeHeap::Blocks {
 public:
  Blocks(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}

  std::byte* allocate(std::size_t bytes) {
    if (bytes > bytes_) return nullptr;
    const SizeClass block = size_class(bytes);
    const std::lock_guard lock(mutex_);
    std::byte* found = reuse(block);
    if (found == nullptr) found = block.bytes < kHugePage ? cut_small(block.bytes) : cut(block.bytes);
    if (found == nullptr) return nullptr;
    used_ += block.bytes;
    ASAN_UNPOISON_MEMORY_REGION(found, bytes);
    return found;
  }

  void release(std::byte* block, std::size_t bytes) {
    const SizeClass of_block = size_class(bytes);
    ASAN_POISON_MEMORY_REGION(block, of_block.bytes);
    const std::lock_guard lock(mutex_);
    used_ -= of_block.bytes;
    free_[of_block.index].push_back(block);
  }

  void warn_of_page_tables(int processes) {
    const std::lock_guard lock(mutex_);
    processes_ = processes;
    look_at_page_tables();
  }

  [[nodiscard]] Statistics statistics() const {
    const std::lock_guard lock(mutex_);
    return {backed_, used_, growths_};
  }

 private:
  std::byte* reuse(const SizeClass& block) {
    std::vector<std::byte*>& blocks = free_[block.index];
    if (blocks.empty()) return nullptr;
    std::byte* last = blocks.back();  // the one used last: its lines are in the caches
    blocks.pop_back();
    return last;
  }

  std::byte* cut_small(std::size_t bytes) {
    if (small_left_ < bytes) {
      std::byte* page = cut(kHugePage);
      if (page == nullptr) return nullptr;
      // The rest of the previous page is too small to be worth keeping track of.
      small_next_ = page;
      small_left_ = kHugePage;
    }
    std::byte* block = small_next_;
    small_next_ += bytes;
    small_left_ -= bytes;
    return block;
  }

  std::byte* cut(std::size_t bytes) {
    if (cut_ + bytes > backed_ && !grow(cut_ + bytes - backed_)) return nullptr;
    std::byte* block = base_ + cut_;
    cut_ += bytes;
    return block;
  }

  /// Backs at least `bytes` more with pages; the larger the heap already is, the more at a time.
  bool grow(std::size_t bytes) {
    const std::size_t room = bytes_ - backed_;
    if (bytes > room) return refuse("its file has no more room", bytes, room, warned_of_room_);
    const std::size_t wanted =
        std::min(std::max(bytes, std::min(round_up(backed_, kHugePage), kLargestGrowth)), room);
    const std::size_t available = available_memory();
    const std::size_t added = wanted <= available / 2 ? wanted : bytes;
    if (added > available) return refuse("memory is short", added, available, warned_of_memory_);
    if (!back_with_pages(base_ + backed_, added)) {
      in_small_pages_ += added;
      look_at_page_tables();
    }
    ASAN_POISON_MEMORY_REGION(base_ + backed_, added);
    backed_ += added;
    ++growths_;
    return true;
  }

  /// Warns once.
  void look_at_page_tables() {
    if (warned_of_page_tables_) return;
    const std::optional<std::string> warning = page_table_warning(in_small_pages_, processes_);
    warned_of_page_tables_ = warning.has_value();
    if (warning) logging::warning("{}", *warning);
  }

  /// Warns once per reason: tensors that do not fit are private, and everything still works.
  bool refuse(const char* reason, std::size_t wanted, std::size_t left, bool& warned) const {
    if (!std::exchange(warned, true)) {
      logging::warning(
          "the node heap of {} MiB cannot grow by {} MiB, {} MiB are left: {}; tensors are private",
          backed_ >> 20, wanted >> 20, left >> 20, reason);
    }
    return false;
  }

  std::byte* const base_;
  const std::size_t bytes_;
  bool warned_of_room_ = false;
  bool warned_of_memory_ = false;
  bool warned_of_page_tables_ = false;
  mutable std::mutex mutex_;
  std::array<std::vector<std::byte*>, kSizeClasses> free_;
  std::byte* small_next_ = nullptr;
  std::size_t small_left_ = 0;
  std::size_t cut_ = 0;     ///< where the next block is cut
  std::size_t backed_ = 0;  ///< up to where there are pages
  std::size_t in_small_pages_ = 0;
  int processes_ = 1;  ///< that map the heap
  std::size_t used_ = 0;
  std::size_t growths_ = 0;
};

NodeHeap::NodeHeap(int descriptor, MappedRange mapping)
    : descriptor_(descriptor),
      mapping_(std::move(mapping)),
      blocks_(std::make_unique<Blocks>(mapping_.data(), mapping_.bytes())) {}

NodeHeap::~NodeHeap() { close(descriptor_); }

NodeHeap* NodeHeap::make() {
  if (!config().node_heap()) return nullptr;
  // Less address space may be free than the limits say; then half as much is tried.
  constexpr std::size_t kSmallestFile = std::size_t{64} << 20;
  std::string why =
      fmt::format("{} MiB may be reserved, and it takes {}", reservable_memory() >> 20, kSmallestFile >> 20);
  for (std::size_t bytes = std::min(reservable_memory(), kLargestFile) / kHugePage * kHugePage;
       bytes >= kSmallestFile; bytes = bytes / 2 / kHugePage * kHugePage) {
    const int file = make_memory_file("cohort-heap", bytes);
    if (file < 0) {
      why = std::strerror(errno);
      break;
    }
    // Begins at a huge page in every mapping, for the kernel to use them.
    MappedRange mapping = MappedRange::aligned(file, bytes, kHugePage, PROT_READ | PROT_WRITE);
    if (mapping) {
      static_cast<void>(madvise(mapping.data(), bytes, MADV_DONTFORK));
      return new NodeHeap(file, std::move(mapping));
    }
    why = std::strerror(errno);
    close(file);
  }
  logging::warning("no memory that the node's processes can share ({}): tensors are private", why);
  return nullptr;
}

NodeHeap* NodeHeap::of_this_process() {
  static NodeHeap* const heap = make();
  return heap;
}

std::byte* NodeHeap::allocate(std::size_t bytes) { return blocks_->allocate(bytes); }

void NodeHeap::release(std::byte* block, std::size_t bytes) noexcept { blocks_->release(block, bytes); }

void NodeHeap::warn_of_page_tables(int processes) { blocks_->warn_of_page_tables(processes); }

NodeHeap::Statistics NodeHeap::statistics() const { return blocks_->statistics(); }

}  // namespace cohort
