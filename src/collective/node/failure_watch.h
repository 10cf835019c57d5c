// Finds out why a collective will never end, so that no member waits for ever: the group has failed, a worker
// is lost, another node reports an error, members have called different things, a member has left, or the
// deadline has passed. The first reason that any member finds becomes the error of the whole group. It names
// the call and the members that caused it.
//
// A member that waits asks about once a millisecond. By then it has described its own call as well, so that
// others can say how theirs differ. A call that ends soon costs one look at whether the group has failed.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/collective/task.h>

#include "inter_node.h"
#include "node_group.h"
#include "waiting.h"

namespace cohort::node {

class OwnCommunicators;
struct OpenCall;

class FailureWatch {
 public:
  /// Watches the calls of one priority of the member `local_rank`; `open` is the one that it is in.
  FailureWatch(NodeGroup& group, int local_rank, Priority priority, OpenCall& open);

  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

  /// Set once, by a member of a communicator over several nodes.
  void set_inter_node(InterNode* inter_node) noexcept { inter_node_ = inter_node; }
  /// Set once, by a member that is in such communicators.
  void set_own_communicators(OwnCommunicators& own) noexcept { own_communicators_ = &own; }
  [[nodiscard]] bool reaches_other_nodes() const noexcept { return inter_node_ != nullptr; }

  /// @throws the group's error, if it has one.
  void require_usable() {
    if (group_failure_.load(std::memory_order_acquire) != FailureRecord::State::kNone || failure_)
      fail_again();
  }

  /// After reading memory of other members: they had not given up before it was read. A member that was
  /// stopped in the middle of a call may find that all others have done their part, and yet have read what
  /// their programs wrote to their tensors after the error. @throws the group's error.
  void require_unfailed_so_far() {
    std::atomic_thread_fence(std::memory_order_acquire);
    require_usable();
  }

  /// Looks for a reason not to wait any longer in `call`. @throws the error of the group.
  void check(const CollectiveCall& call, const Waiting& waiting);

  /// The same for messages, whose own faults end them alone. @throws the error of the group.
  void check_group();

  /// After a disagreement: describes `call`, and waits for the others to describe theirs, half a second at
  /// most, and longer for those that are known to be in it. Returns the calls of those that have.
  Task<std::vector<MemberCall>> collect_calls(const CollectiveCall& call);
  /// The same, and then @throws InvalidArgument naming the members that have called something else.
  Task<> explain_disagreement(const CollectiveCall& call);

  /// What has caused an error that ended this member's part of `call`, with the call's name.
  [[nodiscard]] Error cause_of(const CollectiveCall& call, const Error& error) const;

  /// Makes `error` the group's, unless it has one, and this member unusable. @throws the group's error.
  [[noreturn]] void fail(const Error& error);
  /// The same without throwing; returns the group's error.
  const Error& set_failure(const Error& error);
  [[nodiscard]] const std::optional<Error>& failure() const noexcept { return failure_; }

  /// For example `all_reduce #12`: the open collective, or the larger one that it is a part of.
  [[nodiscard]] std::string name_of(const CollectiveCall& call) const;

 private:
  [[noreturn]] void fail_again();
  [[nodiscard]] const PriorityBlock& priority_block(int member) const noexcept {
    return *priority_blocks_[member];
  }
  [[nodiscard]] const PriorityBlock& other_priority(int member) const noexcept;
  [[nodiscard]] std::uint64_t announced_word(int member) const noexcept;
  [[nodiscard]] bool has_done_what_is_awaited(int member) const noexcept;
  [[nodiscard]] std::vector<int> missing_members() const;
  /// All are here, but some have stopped before they passed that on, as seen twice, some time apart.
  [[nodiscard]] std::vector<int> members_that_pass_nothing_on();
  void describe_call(const CollectiveCall& call);
  void record_purpose(const CollectiveCall& call);
  void put_in_words(const CollectiveCall& call);
  [[nodiscard]] const PriorityBlock* find_description(int member) const noexcept;
  [[nodiscard]] std::optional<CallSignature> find_record(int member, std::uint64_t number) const;
  void notice_difference() noexcept;
  void answer_questions();
  void require_nobody_left(const CollectiveCall& call);
  void require_nobody_outside(const CollectiveCall& call);
  [[nodiscard]] std::optional<Error> explain_calls_outside(const CollectiveCall& call) const;
  [[nodiscard]] std::uint64_t calls_outside(int member) const noexcept;
  [[nodiscard]] std::optional<Error> explain_earlier_calls() const;
  [[nodiscard]] bool has_gone_on(int member) const;
  void require_nobody_late(const CollectiveCall& call, const Waiting& waiting);
  [[nodiscard]] Error in_call(const CollectiveCall& call, const Error& error) const;

  NodeGroup& group_;
  OpenCall& open_;
  Priority priority_;
  int local_rank_;
  PriorityBlock* const* priority_blocks_;  ///< the group's for this priority, by local rank
  PriorityBlock& own_;
  const std::atomic<FailureRecord::State>& group_failure_;
  InterNode* inter_node_ = nullptr;
  OwnCommunicators* own_communicators_ = nullptr;
  std::optional<Error> failure_;
  std::optional<Waiting::Clock::time_point> departure_noticed_;
  /// When members were first seen that pass nothing on, and in which call.
  struct Idle {
    std::uint64_t number;
    Waiting::Clock::time_point since;
  };
  std::optional<Idle> idle_;
  /// The call in which another member was first seen to have made one outside, and what that said of it.
  struct Outside {
    std::uint64_t number = 0;
    std::uint64_t word = 0;
    [[nodiscard]] bool operator==(const Outside&) const = default;
  };
  Outside noticed_outside_;
  std::uint64_t recorded_purpose_of_ = 0;  ///< the number of a call, plus 1
};

}  // namespace cohort::node
