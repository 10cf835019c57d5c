// The blocks of a store's memory file: which are in use, and those that remember commits. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "store.h"
#include "store_mapping.h"

namespace cohort::server {

/// Which blocks are in use. Only the process that writes keeps this: another that goes on from the file finds
/// the blocks that its variables and commits name, and takes all else as free. So nothing is lost when a
/// process ends between taking a block and naming it.
class StoreBlocks {
 public:
  struct Range {
    std::uint64_t begin;
    std::uint64_t bytes;
  };

  /// `used` are all blocks in use. Pages after the last of them go back to the system.
  /// @throws DataLoss when two of them overlap.
  StoreBlocks(const StoreMapping& mapping, std::vector<Range> used);

  /// The position of a block of zeros. @throws Unavailable when memory is short, saying what it is for.
  [[nodiscard]] std::uint64_t allocate(std::uint64_t bytes, std::string_view purpose);

  /// Takes back what `allocate(bytes)` returned.
  void release(std::uint64_t begin, std::uint64_t bytes);

 private:
  void add_free(std::uint64_t begin, std::uint64_t bytes);
  void remove_free(std::map<std::uint64_t, std::uint64_t>::iterator free);
  void grow(std::uint64_t bytes, std::string_view purpose);

  const StoreMapping& mapping_;
  std::map<std::uint64_t, std::uint64_t> free_;  // bytes by position; none touch each other
  std::set<std::pair<std::uint64_t, std::uint64_t>> free_by_size_;  // bytes, position
  std::uint64_t end_ = kBlocksBegin;     // of the last block that was ever in use: zeros from here on
  std::uint64_t backed_ = kBlocksBegin;  // up to here there are pages
};

/// The commits that a store remembers, and the incarnations that it has fenced: in its memory file, with an
/// index of this process's.
class StoreCommits {
 public:
  explicit StoreCommits(const StoreMapping& mapping) : mapping_(mapping) {}

  /// The blocks of records of the file. @throws DataLoss when they are damaged.
  [[nodiscard]] std::vector<StoreBlocks::Range> find_blocks();

  /// Whether a slot for one record is at this position.
  [[nodiscard]] bool has_slot(std::uint64_t position) const;

  /// Reads the records of the blocks, and names the memory of their results. @throws DataLoss.
  [[nodiscard]] std::vector<StoreBlocks::Range> read_records();

  /// Writes a record that counts only when `publish` is called for the position returned.
  /// @throws Unavailable when memory is short.
  [[nodiscard]] std::uint64_t prepare(StoreBlocks& blocks, const Execution& execution,
                                      std::span<const std::byte> result);
  void publish(std::uint64_t position);
  /// The same before `read_records`.
  void publish_unread(std::uint64_t position);

  [[nodiscard]] bool contains(const Execution& execution) const { return commits_.contains(execution); }
  [[nodiscard]] std::optional<CommitRecord> find(const Execution& execution) const;
  [[nodiscard]] std::vector<CommitRecord> of(std::uint64_t incarnation) const;
  void forget(StoreBlocks& blocks, std::uint64_t incarnation, std::uint64_t number);

  void fence(StoreBlocks& blocks, std::uint64_t incarnation);
  [[nodiscard]] bool is_fenced(std::uint64_t incarnation) const { return fenced_.contains(incarnation); }

 private:
  [[nodiscard]] CommitSlot& slot(std::uint64_t position) const { return mapping_.at<CommitSlot>(position); }
  [[nodiscard]] CommitRecord record(const Execution& execution, std::uint64_t position) const;
  [[nodiscard]] std::uint64_t take_slot(StoreBlocks& blocks);

  const StoreMapping& mapping_;
  std::vector<std::uint64_t> blocks_;  // in the order of their list
  std::vector<std::uint64_t> free_slots_;
  std::map<Execution, std::uint64_t> commits_;  // the slot of each
  std::set<std::uint64_t> fenced_;
};

}  // namespace cohort::server
