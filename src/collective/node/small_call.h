// A collective in one piece, through the line or the slot: every member copies its contribution to where the
// others read it. That costs one crossing of the cache lines and a single wait.
//
// Such a call takes little longer than its instructions, so what all of them need is inline; the rest is for
// nodes with many members.
#pragma once

#include <cstring>

#include "endpoint.h"
#include "tuning.h"

namespace cohort::node {

/// Whether the call goes in one piece, through the line or the slot.
[[nodiscard]] inline bool fits_slot(std::size_t contributed_bytes) noexcept {
  return contributed_bytes <= kSlotBytes;
}

/// The parts of such a call, around the waits for all members.
class SmallCall {
 public:
  /// Opens the collective, contributes and announces it. `call` and `plan` outlive it.
  SmallCall(Endpoint& endpoint, const CollectiveCall& call, const CallPlan& plan)
      : endpoint_(endpoint), call_(call), plan_(plan), in_line_(plan.in_line) {
    endpoint.open(plan);
    if (!in_line_) slot_ = endpoint.next_slot();
    const auto members = static_cast<std::size_t>(endpoint.position().size);
    if (endpoint.has_levels() || members * plan.bytes >= kLeastForOne) [[unlikely]]
      choose_way();
    if (plan.bytes > 0) contribute_own();
    endpoint.announce();
    // What the others do not wait for comes after.
    endpoint.set_reason(ChoiceReason::kSize);
    endpoint.set_algorithm(in_line_ ? "line" : in_shares_ ? "shares" : by_one_ ? "by_one" : "slot");
  }

  /// Whether many members reduce it in shares, or one of them for all.
  [[nodiscard]] bool in_two_steps() const noexcept { return in_shares_ || by_one_; }
  /// Then, after all have announced the same call: does this member's part of it.
  void reduce_own_part();
  /// And this is waited for before `finish`.
  [[nodiscard]] bool is_reduced() noexcept {
    return by_one_ ? endpoint_.is_done(reducer_) : endpoint_.all_are_done();
  }

  /// Makes the result. After all have announced the same call.
  void finish() {
    if (!endpoint_.is_plain() || in_two_steps()) [[unlikely]]
      return finish_among_many();
    collect_result();
  }

 private:
  void choose_way() noexcept;
  void reduce_for_all();
  void finish_among_many();
  [[nodiscard]] bool needs_contributions() const;
  void take_result();

  // The most frequent kind comes first.
  void contribute_own() {
    constexpr std::size_t kShort = 256;  // for which the C library is as fast
    if (call_.kind == CollectiveKind::kAllReduce && plan_.bytes <= kShort)
      std::memcpy(own_buffer(), call_.input, plan_.bytes);
    else
      contribute(call_, endpoint_.position(), {0, plan_.elements}, own_buffer());
  }
  void collect_result() {
    const Position& position = endpoint_.position();
    if (call_.kind == CollectiveKind::kAllReduce && plan_.bytes > 0)
      reduce_cells(plan_.kernel, position, plan_.elements, plan_.bytes, call_.input, call_.output,
                   find_buffers(), !in_line_);
    else if (plan_.bytes > 0)
      collect(call_, plan_.kernel, position, {0, plan_.elements}, find_buffers(), !in_line_);
    endpoint_.prepare_next_line();
  }

  [[nodiscard]] std::byte* own_buffer() const noexcept {
    return in_line_ ? endpoint_.own_payload() : endpoint_.slot(endpoint_.position().rank, slot_);
  }
  [[nodiscard]] std::span<const std::byte*> find_buffers() const noexcept {
    const std::span<const std::byte*> buffers = endpoint_.pointers();
    const int members = endpoint_.position().size;
    for (int member = 0; member < members; ++member) {
      buffers[static_cast<std::size_t>(member)] =
          in_line_ ? endpoint_.payload_of(member) : endpoint_.slot(member, slot_);
    }
    return buffers;
  }

  Endpoint& endpoint_;
  const CollectiveCall& call_;
  const CallPlan& plan_;
  bool in_line_;
  bool in_shares_ = false;
  bool by_one_ = false;
  int reducer_ = 0;                  ///< where one member reduces for all
  bool reduced_on_the_way_ = false;  ///< at the top of the tree
  bool from_root_ = false;           ///< along the tree, the root's contribution alone
  std::uint64_t slot_ = 0;
};

}  // namespace cohort::node
