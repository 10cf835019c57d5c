// How groups that share the wires of the communicator they were split off tell their messages apart:
// each has a number that none of its members has for another group. Numbers serve again once a group
// has gone, generations never.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace cohort {

struct GroupName {
  int number = 0;                ///< 0 for the communicator itself
  std::uint64_t generation = 0;  ///< above that of all groups that its members had before
};

/// What one member has for the next group, to be combined with what the others have.
class GroupOffer {
 public:
  static constexpr int kNumbers = 512;

  /// No number.
  GroupOffer() = default;
  /// All numbers from 1 to `end` - 1, and below kNumbers.
  explicit GroupOffer(std::int64_t end);

  /// Keeps the numbers that the other has, too.
  void combine(const GroupOffer& other);
  /// Nothing when no number is left.
  [[nodiscard]] std::optional<GroupName> name() const;

  /// @throws WrongContext when another group was named since this was offered: it may have the same number.
  void take(const GroupName& name);
  void give_back(int number);

 private:
  std::array<std::uint64_t, kNumbers / 64> free_{};
  std::uint64_t latest_generation_ = 0;
};

/// What a member has, for the communicator and all groups that descend from it. Thread-safe, for groups go
/// on any thread; they are made one at a time.
class GroupNumbers {
 public:
  explicit GroupNumbers(std::int64_t end) : offer_(end) {}

  [[nodiscard]] GroupOffer offer() const {
    const std::lock_guard lock(mutex_);
    return offer_;
  }
  void take(const GroupName& name) {
    const std::lock_guard lock(mutex_);
    offer_.take(name);
  }
  void give_back(int number) {
    const std::lock_guard lock(mutex_);
    offer_.give_back(number);
  }

 private:
  mutable std::mutex mutex_;
  GroupOffer offer_;
};

}  // namespace cohort
