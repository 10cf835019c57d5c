// What members agree on when groups are split off a communicator: who is in which group, and by which context
// id its messages are told apart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include <cohort/collective/collective_call.h>
#include <cohort/device/tensor.h>

namespace cohort {

/// As in MPI: groups that were split off one communicator share its transport, and each tells its messages
/// apart by an id that none of its members uses for another group. The number of an id is used again once its
/// group is gone; a generation is never used again.
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

/// What a member contributes to a split.
struct SplitContribution {
  std::array<std::uint64_t, 2> control_block{};  ///< where it lies on the member's node; twice 0 for nowhere
  ContextIdSet context_ids;                      ///< free for a group over several nodes
};

/// A member of a group that is being split off.
struct SplitMember {
  int rank = 0;  ///< in the communicator that is split
  SplitContribution contribution;
};

/// The exchange with which a split begins: each member tells all others which group it wants to be in, and
/// what it contributes to it.
class SplitExchange {
 public:
  /// Of one of `size` members. Without a color it takes part in no group.
  SplitExchange(int size, std::optional<int> color, int key, const SplitContribution& contribution);

  /// Borrows from this object.
  [[nodiscard]] CollectiveCall call() const;

  /// Once the call has ended: the members of this member's group, in their new order; none where it takes
  /// part in no group.
  [[nodiscard]] std::vector<SplitMember> members() const;

 private:
  std::optional<int> color_;
  Tensor input_;
  Tensor output_;  ///< of all members, by rank
};

}  // namespace cohort
