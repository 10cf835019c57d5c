// What the members of one communicator on one node share: their control blocks, workers and hosts, and the
// group's first error. Made once per process and communicator, and co-owned by all of this process's members;
// in a group that was split off, each member makes its own. The communicator may have members on other nodes:
// local ranks are counted within the node, ranks within the communicator.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <cohort/base/error.h>

#include "collective/call/operation_in_flight.h"
#include "collective/choice/selection.h"
#include "collective/communicator_base.h"
#include "collective/host_communicators.h"
#include "collective/record/call_record.h"
#include "control_block.h"
#include "control_block_memory.h"
#include "device/node_memory.h"
#include "levels.h"
#include "node_failure.h"

namespace cohort::node {

class NodeGroup {
 public:
  /// Collective over the workers of `options.exchange`.
  explicit NodeGroup(const NodeGroupOptions& options);
  /// A group of members of `parent`, as one of them sees it, by this name.
  /// @throws Unavailable, on each of them, when the control block of one cannot be reached.
  NodeGroup(const NodeGroup& parent, std::span<const SplitMember> split_members, int own_rank,
            NewControlBlock own_block, std::string name);
  ~NodeGroup();

  NodeGroup(const NodeGroup&) = delete;
  NodeGroup& operator=(const NodeGroup&) = delete;

  [[nodiscard]] int size() const noexcept { return static_cast<int>(blocks_.size()); }

  /// What reports call the communicator: the number of those that this process has made, `1`, or for a group
  /// `1.14.2`, which call #14 of communicator 1 split off for color 2.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const ReportPlace& report_place() const noexcept { return report_place_; }
  /// A line for each worker or link that made the others wait lately.
  [[nodiscard]] std::vector<std::string> slow_workers() const {
    return observer_ ? observer_->slow_workers() : std::vector<std::string>();
  }

  /// All members of the communicator, by rank.
  [[nodiscard]] const std::vector<MemberInfo>& members() const noexcept { return members_; }
  [[nodiscard]] std::string who(int rank) const {
    return describe(rank, members_[static_cast<std::size_t>(rank)]);
  }
  [[nodiscard]] const std::string& host_of(int rank) const noexcept {
    return members_[static_cast<std::size_t>(rank)].host;
  }

  [[nodiscard]] int rank_of(int local_rank) const noexcept {
    return ranks_[static_cast<std::size_t>(local_rank)];
  }
  /// The local rank of a member of this node; nothing for those of other nodes.
  [[nodiscard]] std::optional<int> local_rank_of(int rank) const noexcept;

  [[nodiscard]] ControlBlock& control_block(int member) const noexcept {
    return *blocks_[static_cast<std::size_t>(member)];
  }

  /// The members' blocks for calls of one priority, by local rank.
  [[nodiscard]] std::span<PriorityBlock* const> priority_blocks(Priority priority) const noexcept {
    return priority_blocks_[static_cast<std::size_t>(priority)];
  }

  /// Where each member is in the tree of levels, by local rank; empty where members look at each other's
  /// lines.
  [[nodiscard]] const std::vector<TreePlace>& tree() const noexcept { return tree_; }
  /// The members of each socket, where there is a tree and their ranks are consecutive; otherwise empty.
  [[nodiscard]] const std::vector<MemberRange>& sockets() const noexcept { return sockets_; }
  /// Null: nobody counts.
  [[nodiscard]] LineCounter* counter() const noexcept { return counter_.get(); }

  /// The local rank of the first of this process's members.
  [[nodiscard]] int first_own_local_rank() const noexcept { return first_own_; }

  /// What algorithms are chosen from, the same on all members.
  [[nodiscard]] const Selection& selection() const noexcept { return selection_; }

  [[nodiscard]] const NodeMemory& memory() const noexcept { return *memory_; }
  [[nodiscard]] int worker_of(int member) const noexcept {
    return workers_[static_cast<std::size_t>(member)];
  }

  [[nodiscard]] bool blocks_in_heap() const noexcept { return blocks_in_heap_; }
  [[nodiscard]] bool any_thread_may_drive() const noexcept { return any_thread_; }

  /// Whether all members are of this process.
  [[nodiscard]] bool is_one_process() const noexcept { return one_process_; }

  /// More members on this host than cores, or several that wait for other nodes: then a waiting member gives
  /// its core away at once.
  [[nodiscard]] bool oversubscribed() const noexcept { return oversubscribed_; }
  /// Only the first, which decides how calls are done; the same on all members.
  [[nodiscard]] bool shares_cores() const noexcept { return shares_cores_; }

  /// How long `call` waits for its members; 0: for ever.
  [[nodiscard]] std::chrono::duration<double> timeout(const CollectiveCall& call) const noexcept {
    return timeout_of(call, timeout_);
  }

  /// Whether members that only send go ahead in small calls; never where some are on other nodes.
  [[nodiscard]] bool is_eager() const noexcept { return eager_ && members_.size() == blocks_.size(); }

  /// What a thread that waits calls every few microseconds; null: nothing.
  [[nodiscard]] auto while_waiting() const noexcept { return while_waiting_; }

  /// True if reproducible results were asked for and this operation's result depends on the order: then
  /// operands are combined by rank.
  [[nodiscard]] bool fixes_order_of(const CollectiveCall& call) const noexcept;

  /// Whether workers are watched, so that the loss of one is noticed.
  [[nodiscard]] bool reports_lost_workers() const noexcept { return fault_ != nullptr; }

  /// The loss of a worker, if one is known; its origin is this group's first member on that worker, if any.
  [[nodiscard]] std::optional<Error> fault() const;

  /// True once some member has reported a failure; costs one read of a cache line that hardly ever changes.
  [[nodiscard]] bool failed() const noexcept {
    return record().state.load(std::memory_order_acquire) != FailureRecord::State::kNone;
  }

  /// Makes `error` the group's failure, unless there is one already; true if it now is. Then the caller is
  /// the one to `report` it.
  bool fail(const Error& error);

  /// Makes the node's report, once the members of other nodes have been told.
  void report(const Error& error);

  /// The group's failure, once it has been reported. Only after `failed()`.
  [[nodiscard]] Error failure() const;
  /// The same at once, for who is to report it.
  [[nodiscard]] Error first_error() const;

  /// False in a forked child, which has a copy of this object and no access to the control blocks.
  [[nodiscard]] bool is_of_this_process() const noexcept;

  /// Deliberately leaks memory that a transfer may still access: there is no way to know when it stops.
  static void keep_for_ever(std::shared_ptr<const void> memory);

  /// A member of this process leaves. `held` is memory that others may still read or write; it is kept until
  /// they have left as well.
  void leave(int member, std::vector<std::shared_ptr<const void>> held);

 private:
  struct MemberPlace;
  void gather_blocks(const NodeGroupOptions& options, std::span<ControlBlock* const> own_blocks);
  void add_blocks(std::span<ControlBlock* const> blocks, int worker, int first_rank);
  std::vector<std::string> exchange_places(const NodeGroupOptions& options,
                                           std::span<const MemberPlace> own_places, std::size_t members);
  [[nodiscard]] bool needs_tree(int members, bool is_described) const noexcept;
  void make_tree();
  [[nodiscard]] ControlBlock* find_block(const SplitMember& member, int worker) const noexcept;
  [[nodiscard]] ReportPlace place_of_reports(const NodeGroupOptions& options) const;
  void detect_oversubscription();
  void show_records(const std::shared_ptr<RecordObserver>& observer);
  [[nodiscard]] FailureRecord& record() const noexcept { return blocks_.front()->failure; }

  const std::int64_t process_;
  const std::string name_;
  std::shared_ptr<const NodeMemory> memory_;
  Selection selection_;
  std::vector<std::shared_ptr<const Buffer>> own_buffers_;  ///< the control blocks of this process's members
  std::vector<ControlBlock*> blocks_;
  std::array<std::vector<PriorityBlock*>, kPriorities>
      priority_blocks_;       ///< of the control blocks, by priority
  std::vector<int> workers_;  ///< by local rank
  std::vector<int> ranks_;    ///< by local rank
  std::vector<MemberInfo> members_;
  std::vector<LevelGroups> groups_;  ///< by local rank; empty where no tree is needed
  std::vector<TreePlace> tree_;
  std::vector<MemberRange> sockets_;
  int most_members_without_tree_;
  std::shared_ptr<LineCounter> counter_;
  int first_own_ = 0;
  bool one_process_ = false;
  bool shares_cores_ = false;  ///< there are more members on this host than cores
  bool oversubscribed_ = false;
  std::chrono::duration<double> timeout_;
  void (*while_waiting_)();
  bool reproducible_;
  bool eager_;
  bool blocks_in_heap_;
  bool any_thread_;
  std::function<const Error*()> fault_;
  std::function<void()> on_failure_;
  ReportPlace report_place_;
  std::shared_ptr<RecordObserver> observer_;  ///< may be null
  std::atomic<bool> is_shown_{false};         ///< to the observer; the members of a process may leave at once
};

}  // namespace cohort::node
