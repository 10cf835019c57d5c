// The commits that a store remembers, and the incarnations that it has fenced: in its memory file, with an
// index of this process's. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "server/store.h"
#include "server/store_blocks.h"
#include "server/store_mapping.h"

namespace cohort::server {

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
