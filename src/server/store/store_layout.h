// How the memory file of a store is laid out. All processes that map it are of one machine, so its numbers
// have that machine's byte order; positions are bytes from the beginning of the file.
//
//     header | changes of the recorded commit | table of variables | blocks: values, names, commits, results
//
// The parts before the blocks have a fixed place and take memory only as far as they are used.
//
// A value has two copies, the second `copy_stride` bytes after the first. The variable's sequence says which
// is current: copy k & 1 of version k = sequence / 2. An odd sequence says that the other copy is being
// written, or was left half written. The sequence never falls: a reader that began with version k has read
// nothing else if the sequence is still at most 2k + 2 afterwards, since the next change writes that copy
// from 2k + 3 on. Were it to fall after an abandoned change, a reader might take a half-written copy for the
// old one.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <cohort/device/shape.h>

namespace cohort::server {

inline constexpr auto kStoreMagic =
    std::bit_cast<std::uint64_t>(std::array{'c', 'o', 'h', 'S', 't', 'o', 'r', 'e'});
inline constexpr std::uint32_t kStoreVersion = 1;
inline constexpr std::uint32_t kByteOrder = 0x01020304;

inline constexpr std::size_t kMostVariables = std::size_t{1} << 16;
inline constexpr std::size_t kMostSlots = 17;

struct StoreHeader {
  std::atomic<std::uint64_t> magic;  ///< written last
  std::uint32_t version;
  std::uint32_t byte_order;
  std::uint64_t identity;        ///< drawn at random
  std::uint64_t reserved_bytes;  ///< the address range of a mapping: the file can grow to this size

  std::atomic<std::uint64_t> variables;       ///< how many entries of the table are complete
  std::atomic<std::uint64_t> commit_records;  ///< the first block of records; 0 for none

  /// 1 from when a commit is recorded until all its copies have changed places.
  std::atomic<std::uint64_t> commit_recorded;
  std::uint64_t recorded_changes;
  std::uint64_t recorded_record;  ///< the CommitSlot that becomes valid with it; 0 for none
};

/// A variable of the recorded commit, and the version that it has from then on.
struct RecordedChange {
  std::uint64_t variable;
  std::uint64_t version;
};

struct alignas(64) VariableEntry {
  std::atomic<std::uint64_t> sequence;
  std::uint64_t value;  ///< where the first copy is
  std::uint64_t bytes;
  std::uint64_t row_bytes;  ///< 0 for a scalar
  std::uint64_t name;
  std::uint32_t name_bytes;
  std::atomic<std::uint32_t> slots;
  std::uint32_t dtype;
  std::uint32_t rank;
  std::array<std::int64_t, Shape::kLargestRank> extents;
  std::array<std::uint64_t, kMostSlots> slot;  ///< like `value`
};
static_assert(sizeof(VariableEntry) == 256);

enum class CommitSlotState : std::uint64_t { kFree, kCommitted, kFenced };

/// A remembered commit, or an incarnation that was fenced.
struct CommitSlot {
  std::atomic<CommitSlotState> state;
  std::uint64_t incarnation;
  std::uint64_t number;
  std::uint64_t result;
  std::uint64_t result_bytes;
};

/// Commits are remembered in blocks, each of which names the next one.
struct CommitBlock {
  std::atomic<std::uint64_t> next;  ///< 0 for none
  std::array<CommitSlot, 51> slots;
};
static_assert(sizeof(CommitBlock) == 2048);

// The numbers are shared between processes.
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic<CommitSlotState>::is_always_lock_free);

inline constexpr std::size_t kPage = 4096;
inline constexpr std::uint64_t kChangesBegin = kPage;
inline constexpr std::uint64_t kTableBegin = kChangesBegin + kMostVariables * sizeof(RecordedChange);
inline constexpr std::uint64_t kBlocksBegin = kTableBegin + kMostVariables * sizeof(VariableEntry);
static_assert(sizeof(StoreHeader) <= kChangesBegin);

/// Blocks, and the copies of a value, begin at a cache line.
inline constexpr std::uint64_t kBlockAlignment = 64;

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// What is stored before it is in the file before what is stored after it, should the process end in between.
/// Only the compiler could change this order: a process always ends between two instructions.
inline void keep_order() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// From the first copy of a value to the second.
[[nodiscard]] constexpr std::uint64_t copy_stride(std::uint64_t bytes) {
  return round_up(bytes, kBlockAlignment);
}

}  // namespace cohort::server
