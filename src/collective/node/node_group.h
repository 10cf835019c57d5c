// What the members of one communicator on one node share: each other's seats, who they
// are, the first error. Made once per process and communicator; all of this process's
// members co-own it. The communicator may have members on other nodes: seats are numbered
// within the node, ranks within the communicator.
//
// The seats of this process are blocks of its heap. A member that leaves tells each
// other seat; a seat is given back to the heap once all others have left it alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/collective/communicator.h>
#include <cohort/collective/node_communicator.h>
#include <cohort/device/node_memory.h>

#include "seat_memory.h"

namespace cohort::node {

class NodeGroup {
 public:
  /// Collective over the workers of `options.exchange`.
  explicit NodeGroup(const NodeGroupOptions& options);
  ~NodeGroup();

  NodeGroup(const NodeGroup&) = delete;
  NodeGroup& operator=(const NodeGroup&) = delete;

  [[nodiscard]] int size() const noexcept { return static_cast<int>(seats_.size()); }

  /// All members of the communicator, by rank.
  [[nodiscard]] const std::vector<MemberInfo>& members() const noexcept { return members_; }
  [[nodiscard]] std::string who(int rank) const {
    return describe(rank, members_[static_cast<std::size_t>(rank)]);
  }
  [[nodiscard]] const std::string& host_of(int rank) const noexcept {
    return members_[static_cast<std::size_t>(rank)].host;
  }

  [[nodiscard]] int rank_of(int seat) const noexcept { return ranks_[static_cast<std::size_t>(seat)]; }
  /// The seat of a member of this node; nothing for those of other nodes.
  [[nodiscard]] std::optional<int> seat_of(int rank) const noexcept;

  [[nodiscard]] std::span<SeatMemory* const> seats() const noexcept { return seats_; }
  [[nodiscard]] SeatMemory& seat(int member) const noexcept {
    return *seats_[static_cast<std::size_t>(member)];
  }

  /// The seat of the first of this process's members.
  [[nodiscard]] int first_own_seat() const noexcept { return first_own_; }

  [[nodiscard]] const NodeMemory& memory() const noexcept { return *memory_; }
  [[nodiscard]] int worker_of(int member) const noexcept {
    return workers_[static_cast<std::size_t>(member)];
  }

  /// Whether all members are of this process.
  [[nodiscard]] bool is_one_process() const noexcept { return own_blocks_.size() == seats_.size(); }

  /// More members than cores, or several that wait for other nodes: then who waits must give way at once.
  [[nodiscard]] bool crowded() const noexcept { return crowded_; }

  /// How long a call waits for other members; 0 for ever.
  [[nodiscard]] std::chrono::duration<double> timeout_of(const CollectiveCall& call) const noexcept {
    return call.timeout_seconds ? std::chrono::duration<double>(*call.timeout_seconds) : timeout_;
  }

  /// Whether the loss of a worker would become known.
  [[nodiscard]] bool is_watched() const noexcept { return fault_ != nullptr; }

  /// The loss of a worker, if one is known.
  [[nodiscard]] const Error* fault() const { return fault_ ? fault_() : nullptr; }

  /// True once some member has reported a failure; costs one read of a line that hardly ever changes.
  [[nodiscard]] bool failed() const noexcept {
    return record().state.load(std::memory_order_acquire) != FailureRecord::State::kNone;
  }

  /// Makes `error` the group's failure, unless there is one already; true if it now is.
  bool fail(const Error& error);

  /// The group's failure. Only after `failed()`.
  [[nodiscard]] Error failure() const;

  /// False in a forked child, which has a copy of this object and no access to the seats.
  [[nodiscard]] bool is_of_this_process() const noexcept;

  /// Keeps memory that transfers between nodes may still read or write, which nobody can tell.
  static void keep_for_ever(std::shared_ptr<const void> memory);

  /// A member of this process leaves; `held` is memory that others may still read or write, until
  /// they have left as well.
  void leave(int member, std::vector<std::shared_ptr<const void>> held);

 private:
  void take_seats(const NodeGroupOptions& options, std::span<SeatMemory* const> own_seats);
  void add_seats(std::span<SeatMemory* const> seats, int worker, int first_rank);
  std::vector<std::string> exchange_offsets(const NodeGroupOptions& options,
                                            std::span<SeatMemory* const> own_seats, bool alone);
  [[nodiscard]] FailureRecord& record() const noexcept { return seats_.front()->failure; }

  const std::int64_t process_;
  std::shared_ptr<const NodeMemory> memory_;
  std::vector<std::shared_ptr<const Buffer>> own_blocks_;  ///< the seats of this process's members
  std::vector<SeatMemory*> seats_;
  std::vector<int> workers_;  ///< by seat
  std::vector<int> ranks_;    ///< by seat
  std::vector<MemberInfo> members_;
  int first_own_ = 0;
  bool crowded_ = false;
  std::chrono::duration<double> timeout_;
  std::function<const Error*()> fault_;
};

}  // namespace cohort::node
