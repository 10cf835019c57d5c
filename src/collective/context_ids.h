// Context ids, as in MPI: groups that were split off one communicator share its transport, and each tells its
// messages apart by an id that none of its members uses for another group. The number of an id is used again
// once its group is gone; a generation is never used again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace cohort {

struct ContextId {
  int number = 0;                ///< 0 for the communicator itself
  std::uint64_t generation = 0;  ///< above that of all groups that its members had before
};

/// The numbers that are free for the next group: on one member, or, once sets are combined, on all of theirs.
class ContextIdSet {
 public:
  static constexpr int kIds = 512;

  /// No number.
  ContextIdSet() = default;
  /// All numbers from 1 to `end` - 1, and below kIds.
  explicit ContextIdSet(std::int64_t end);

  /// Keeps the numbers that are free in both.
  void combine(const ContextIdSet& other);
  /// The lowest free number; nothing when none is left.
  [[nodiscard]] std::optional<ContextId> lowest() const;

  /// @throws WrongContext when this member has taken another id since the set was read: the number may be in
  /// use.
  void take(const ContextId& id);
  void give_back(int number);

 private:
  std::array<std::uint64_t, kIds / 64> free_{};
  std::uint64_t latest_generation_ = 0;
};

/// A member's free ids, for the communicator and all groups that descend from it. Thread-safe, because
/// groups may end on any thread; they are made one at a time.
class ContextIdPool {
 public:
  explicit ContextIdPool(std::int64_t end) : free_ids_(end) {}

  [[nodiscard]] ContextIdSet free_ids() const {
    const std::lock_guard lock(mutex_);
    return free_ids_;
  }
  void take(const ContextId& id) {
    const std::lock_guard lock(mutex_);
    free_ids_.take(id);
  }
  void give_back(int number) {
    const std::lock_guard lock(mutex_);
    free_ids_.give_back(number);
  }

 private:
  mutable std::mutex mutex_;
  ContextIdSet free_ids_;
};

}  // namespace cohort
