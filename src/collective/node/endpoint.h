// One member's side of the protocol, for calls of one priority: it announces calls, waits
// for the others, notices who differs, is missing or gone, and makes that the error of
// the whole group.
//
// One thread at a time drives a endpoint.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/collective/task.h>

#include "cell_rotation.h"
#include "collective/choice/choice_reason.h"
#include "collective/choice/tuning_table.h"
#include "collective/kernels/prefetch.h"
#include "contribution.h"
#include "inter_node.h"
#include "node_group.h"
#include "waiting.h"

namespace cohort::node {

/// What follows from a call alone.
struct CallPlan {
  std::uint32_t fingerprint = 0;     ///< of what members must agree on
  CallDetails details;               ///< as exactly as the fingerprint cannot always say
  bool payload_has_details = false;  ///< the fingerprint is not exact: the payload begins with the details
  std::size_t elements = 0;          ///< of a member's longest block
  std::size_t bytes = 0;             ///< that one member contributes
  bool in_line = false;              ///< the payload is the data, and the fingerprint exact
  ReductionKernel kernel = nullptr;  ///< of the kinds that reduce
};

class Endpoint {
 public:
  Endpoint(std::shared_ptr<NodeGroup> group, int local_rank, Priority priority);

  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  [[nodiscard]] NodeGroup& group() const noexcept { return *group_; }
  [[nodiscard]] const Position& position() const noexcept { return position_; }
  [[nodiscard]] PriorityBlock& peer(int member) const noexcept { return *priority_blocks_[member]; }

  /// Set once, by a member of a communicator over several nodes.
  void set_inter_node(InterNode* inter_node) noexcept { inter_node_ = inter_node; }
  [[nodiscard]] bool reaches_other_nodes() const noexcept { return inter_node_ != nullptr; }

  /// Set once: the members of the node for algorithms that programs have registered.
  void set_peers(Peers& peers) noexcept { peers_ = &peers; }
  [[nodiscard]] Peers& peers() const noexcept { return *peers_; }

  // ---- one collective after the other

  /// The number of the next collective, among those of all priorities.
  void set_number(std::uint64_t number) noexcept { number_ = number; }

  /// What is opened until `end_parts` is part of `call`, and the first of it is the call itself.
  void begin_parts(const CollectiveCall& call) noexcept { whole_ = &call; }
  void end_parts() noexcept { whole_ = nullptr; }
  [[nodiscard]] bool in_parts() const noexcept { return whole_ != nullptr; }
  /// Of the call, or of that which it is a part of.
  [[nodiscard]] CollectiveKind kind_of_whole(const CollectiveCall& call) const noexcept {
    return whole(call).kind;
  }

  /// The plan is kept for the next call, which most often is alike.
  [[nodiscard]] const CallPlan& plan(const CollectiveCall& call) {
    const bool alike = call.elements == planned_.elements && call.kind == planned_.kind &&
                       call.dtype == planned_.dtype && call.op == planned_.op && call.root == planned_.root &&
                       call.layout == planned_.layout && call.counts.empty();
    if (!alike) make_plan(call);
    return plan_;
  }

  /// Opens the next collective. @throws the group's failure.
  void open(const CallPlan& plan) {
    if (group_failure_.load(std::memory_order_acquire) != FailureRecord::State::kNone || failure_)
      fail_again();
    ++sequence_;
    word_ = sequence_ << 32 | plan.fingerprint;
    disagreement_ = false;
    payload_has_details_ = plan.payload_has_details;
    if (payload_has_details_) write_details(plan.details);
  }

  /// How many collectives of this member, of all priorities, were called before the open one.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

  /// A member's payload of the open collective; this member's own is written before `announce`. It
  /// begins with the call's details where the data is elsewhere.
  [[nodiscard]] std::byte* payload_of(int member) const noexcept {
    return peer(member).lines[line_of(sequence_)].payload.data();
  }

  /// Tells the others that this member is here and what it has called; its payload is complete.
  void announce() noexcept {
    own_line().word.store(word_, std::memory_order_release);
    own_.bell.ring();
  }

  /// True when all members have announced the same call, or when one differs.
  [[nodiscard]] bool all_announced() noexcept {
    await(Awaited::kAnnouncements, sequence_);
    const std::size_t turn = line_of(sequence_);
    for (; next_to_check_ < position_.size; ++next_to_check_) {
      const std::uint64_t word = peer(next_to_check_).lines[turn].word.load(std::memory_order_acquire);
      if (word == word_) continue;
      if (word >> 32 != word_ >> 32) return false;
      disagreement_ = true;
      return true;
    }
    return true;
  }

  /// After `all_announced`: whether some member has called something else.
  [[nodiscard]] bool disagreement() const noexcept {
    return disagreement_ || (payload_has_details_ && details_differ());
  }

  /// Waits for the members' exact calls. @throws InvalidArgument naming the odd ones.
  Task<> explain_disagreement(const CollectiveCall& call);

  /// The same without the conclusion: the exact calls of those who have said what they called.
  struct Signatures {
    std::vector<CallSignature> calls;
    std::vector<int> ranks;
  };
  Task<Signatures> collect_signatures(const CollectiveCall& call);

  /// Fetches the line of the next call for writing, which hides behind what the caller does between.
  void prepare_next_line() noexcept { prefetch_to_write(&own_.lines[line_of(sequence_ + 1)]); }

  // ---- within a collective: what has been done since the beginning, by count

  void raise_pieces(std::uint64_t pieces) noexcept {
    own_.pieces.store(pieces, std::memory_order_release);
    own_.bell.ring();
  }
  [[nodiscard]] bool all_have_pieces(std::uint64_t pieces) noexcept;
  void raise_shares() noexcept {
    own_.shares.store(++shares_, std::memory_order_release);
    own_.bell.ring();
  }
  [[nodiscard]] bool all_have_shares() noexcept;
  /// From now on those are missing whose share is not done, this member included.
  void await_next_shares() noexcept { await(Awaited::kShares, shares_ + 1); }

  /// The cells of a slot (a call of one piece) and of a piece of a longer call, by number.
  [[nodiscard]] std::byte* slot(int member, std::uint64_t number) const noexcept {
    const CellLocation location = slot_of(member, number, position_.size);
    return peer(location.owner).slots[location.index].data();
  }
  [[nodiscard]] std::byte* cell(int member, std::uint64_t piece) const noexcept;
  [[nodiscard]] std::uint64_t next_slot() noexcept { return slots_++; }
  [[nodiscard]] std::uint64_t next_pieces(std::uint64_t count) noexcept {
    return std::exchange(pieces_, pieces_ + count);
  }

  /// Space for a pointer per member.
  [[nodiscard]] std::span<const std::byte*> pointers() noexcept { return pointers_; }
  [[nodiscard]] std::span<std::byte*> more_pointers() noexcept { return more_pointers_; }

  // ---- waiting

  template <class Condition>
  void wait_for(const CollectiveCall& call, Condition condition) {
    if (position_.size == 1 && condition()) return;
    // Most waits end within these polls, and need neither the clock nor a plan.
    constexpr int kPollsAtOnce = 256;
    for (int poll = group_->oversubscribed() ? kPollsAtOnce : 0; poll < kPollsAtOnce; ++poll) {
      pause_for_a_crossing();
      if (condition()) return;
    }
    Waiting waiting(group_->oversubscribed());
    do {
      if (waiting.is_time_to_check()) check_for_failure(call, waiting);
      if (!waiting.naps()) {
        waiting.give_way();
        continue;
      }
      // The first that has not done what is awaited; if it is something else, this is a nap as any other.
      const Bell::Sleeper sleeper(peer(std::min(next_to_check_, position_.size - 1)).bell);
      if (condition()) return;
      sleeper.sleep(waiting.nap());
    } while (!condition());
  }

  /// Memory for the lists of the open collective, which keeps what earlier ones have used.
  [[nodiscard]] std::pmr::memory_resource* lists() noexcept { return &lists_; }

  /// Runs an algorithm to its end.
  void drive(const CollectiveCall& call, Task<> task);

  /// Looks for a reason not to wait any longer. @throws the error of the group.
  void check_for_failure(const CollectiveCall& call, const Waiting& waiting);

  /// What lies behind an error that ended this member's part of `call`, with the call's name.
  [[nodiscard]] Error cause_of(const CollectiveCall& call, const Error& error) const;

  /// Makes `error` the group's, unless it has one, and this member unusable. @throws the group's error.
  [[noreturn]] void fail(const Error& error);
  /// The same without throwing; returns the group's error.
  const Error& set_failure(const Error& error);
  [[nodiscard]] const std::optional<Error>& failure() const noexcept { return failure_; }

  /// For example `all_reduce #12`: the open collective, or the whole of which it is a part.
  [[nodiscard]] std::string name_of(const CollectiveCall& call) const;

  std::string_view algorithm = "none";        ///< what carries out the open collective
  ChoiceReason reason = ChoiceReason::kSize;  ///< and why

  /// What the ways of large calls are chosen by, the same on all members; none before the first such call.
  std::optional<TuningTable> tuning;

 private:
  enum class Awaited { kAnnouncements, kPieces, kShares };

  [[nodiscard]] Line& own_line() noexcept { return own_.lines[line_of(sequence_)]; }
  void await(Awaited what, std::uint64_t count) noexcept {
    if (awaited_ == what && awaited_count_ == count) return;
    awaited_ = what;
    awaited_count_ = count;
    next_to_check_ = 0;
  }
  void make_plan(const CollectiveCall& call);
  [[noreturn]] void fail_again();
  void write_details(CallDetails details) const noexcept {
    details.number = number_;
    std::memcpy(payload_of(position_.rank), &details, sizeof details);
  }
  [[nodiscard]] bool announced(int member) const noexcept;
  [[nodiscard]] const PriorityBlock* find_description(int member) const noexcept;
  [[nodiscard]] const PriorityBlock& other_priority(int member) const noexcept;
  [[nodiscard]] bool details_differ() const noexcept;
  void notice_difference() noexcept;
  [[nodiscard]] std::vector<int> missing_members() const;
  void describe_call(const CollectiveCall& call);
  void require_nobody_left(const CollectiveCall& call);
  void require_nobody_late(const CollectiveCall& call, const Waiting& waiting);
  [[nodiscard]] Error in_call(const CollectiveCall& call, const Error& error) const;
  [[nodiscard]] const CollectiveCall& whole(const CollectiveCall& call) const noexcept {
    return (whole_ == nullptr ? call : *whole_).as_called();
  }

  std::shared_ptr<NodeGroup> group_;
  Position position_;
  Priority priority_;
  PriorityBlock* const* priority_blocks_;  ///< the group's for this priority, by local rank
  PriorityBlock& own_;
  const std::atomic<FailureRecord::State>& group_failure_;
  InterNode* inter_node_ = nullptr;
  Peers* peers_ = nullptr;

  std::uint64_t number_ = 0;
  const CollectiveCall* whole_ = nullptr;
  std::uint64_t sequence_ = 0;  ///< announcements: a collective in parts has several
  std::uint64_t word_ = 0;
  bool disagreement_ = false;
  bool payload_has_details_ = false;  ///< in the payload of the open collective
  int next_to_check_ = 0;             ///< members before it have done what is awaited
  Awaited awaited_ = Awaited::kAnnouncements;
  std::uint64_t awaited_count_ = 0;

  /// What tells the plans of two calls apart; calls with counts are planned each time.
  struct PlanKey {
    std::size_t elements = 0;
    std::uint64_t layout = 0;
    int root = -1;
    CollectiveKind kind = CollectiveKind::kBarrier;
    DType dtype = DType::kUInt8;
    ReduceOp op = ReduceOp::kSum;
  };
  PlanKey planned_;
  CallPlan plan_;

  std::uint64_t slots_ = 0;
  std::uint64_t pieces_ = 0;
  std::uint64_t shares_ = 0;
  std::vector<const std::byte*> pointers_;
  std::vector<std::byte*> more_pointers_;
  std::pmr::unsynchronized_pool_resource lists_;
  std::optional<Error> failure_;
  std::optional<Waiting::Clock::time_point> departure_noticed_;
};

}  // namespace cohort::node
