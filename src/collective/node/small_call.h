// A collective in one piece, through the line or the slot: every member copies its contribution to where the
// others read it. That costs one crossing of the cache lines and a single wait.
//
// Such a call takes little longer than its instructions, so what all of them need is inline, and in no object
// whose address others know; the rest is for nodes with many members.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "endpoint.h"
#include "protocol.h"

namespace cohort::node {

/// Whether the call goes in one piece, through the line or the slot.
[[nodiscard]] inline bool fits_slot(std::size_t contributed_bytes) noexcept {
  return contributed_bytes <= kSlotBytes;
}

/// How the members carry such a call out.
enum class SmallWay : std::uint8_t {
  kLine,         ///< through the line; each takes what it needs of all contributions
  kSlot,         ///< the same through the slot
  kEager,        ///< the same, in which members that only send do not wait for the others
  kReducedLine,  ///< what they contribute is reduced on its way along the tree
  kRootsLine,    ///< the root's contribution goes to all along the tree
  kShares,       ///< many members reduce what is in the slots in shares
  kByOne,        ///< or one of them for all
};

/// As reports name it.
inline constexpr std::array<std::string_view, 7> kSmallWayNames{"line", "slot",   "eager", "line",
                                                                "line", "shares", "by_one"};

/// One call: what is known of it, and where its data lies.
struct SmallCall {
  Endpoint& endpoint;
  const CollectiveCall& call;
  const CallPlan& plan;  ///< it and the call outlive this
  SmallWay way = SmallWay::kLine;
  std::uint64_t slot_number = 0;  ///< where it goes through slots

  [[nodiscard]] bool in_line() const noexcept { return plan.in_line; }
  /// Whether there is a second wait, for what one member or each has reduced.
  [[nodiscard]] bool in_two_steps() const noexcept { return way >= SmallWay::kShares; }

  [[nodiscard]] std::byte* own_buffer() const noexcept {
    if (in_line()) return endpoint.own_payload();
    return plan.eager ? endpoint.eager_payload(endpoint.position().rank)
                      : endpoint.slot(endpoint.position().rank, slot_number);
  }
  [[nodiscard, gnu::always_inline]] const std::byte* buffer_of(int member) const noexcept {
    if (in_line()) return endpoint.payload_of(member);
    return plan.eager ? endpoint.eager_payload(member) : endpoint.slot(member, slot_number);
  }
  /// Those of all members, in memory of the endpoint.
  [[nodiscard]] std::span<const std::byte*> buffers() const noexcept {
    const std::span<const std::byte*> buffers = endpoint.pointers();
    const int members = endpoint.position().size;
    for (int member = 0; member < members; ++member)
      buffers[static_cast<std::size_t>(member)] = buffer_of(member);
    return buffers;
  }
};

// ---- where there are many members

/// The way where members are many, or the call is large for one of many; tells the endpoint what comes along
/// the tree.
[[nodiscard]] SmallWay choose_small_way(Endpoint& endpoint, const CollectiveCall& call,
                                        const CallPlan& plan) noexcept;
/// Of a call in two steps, after all have announced the same: does this member's part of it.
void reduce_own_part(const SmallCall& small);
/// And this is waited for before the end.
[[nodiscard]] bool is_reduced(const SmallCall& small) noexcept;
void finish_among_many(const SmallCall& small);

// ---- where there are few

/// Copies what this member contributes to where the others read it.
inline void contribute_whole(const SmallCall& small) {
  const CollectiveCall& call = small.call;
  const std::size_t bytes = small.plan.bytes;
  constexpr std::size_t kShort = 256;  // for which the C library is as fast
  if (bytes == 0) return;
  if (bytes > kShort || !call.counts.empty())
    contribute(call, small.endpoint.position(), {0, small.plan.elements}, small.own_buffer());
  else if (small.plan.pattern != CollectiveTraits::Pattern::kFromRoot ||
           small.endpoint.position().rank == call.root)
    std::memcpy(small.own_buffer(), call.input, bytes);
}

/// Makes this member's result of what all have contributed.
inline void collect_result(const SmallCall& small) {
  const CollectiveCall& call = small.call;
  const CallPlan& plan = small.plan;
  const Position& position = small.endpoint.position();
  const bool take_over = small.way == SmallWay::kSlot;
  if (plan.bytes > 0) {
    if (plan.pattern == CollectiveTraits::Pattern::kFromRoot) {
      collect_from_root(call, position, {0, plan.elements}, small.buffer_of(call.root));
    } else if (call.kind != CollectiveKind::kAllReduce) {
      if (plan.pattern != CollectiveTraits::Pattern::kToRoot || position.rank == call.root)
        collect(call, plan.kernel, position, {0, plan.elements}, small.buffers(), take_over);
    } else if (position.size == 2) {  // the most frequent number: no list in memory
      const std::byte* const other = small.buffer_of(1 - position.rank);
      std::array both{other, other};  // one of which gives way to this member's input
      reduce_cells(plan.kernel, position, plan.elements, plan.bytes, call.input, call.output, both,
                   take_over);
    } else {
      reduce_cells(plan.kernel, position, plan.elements, plan.bytes, call.input, call.output, small.buffers(),
                   take_over);
    }
  }
  small.endpoint.prepare_next_line();
}

/// Contributes to an open collective whose way is chosen, and announces it.
inline void announce_small(const SmallCall& small) {
  contribute_whole(small);
  small.endpoint.announce();
  // What the others do not wait for comes after.
  small.endpoint.set_reason(ChoiceReason::kSize);
  small.endpoint.set_algorithm(kSmallWayNames[static_cast<std::size_t>(small.way)]);
}

/// Opens the collective, contributes and announces it.
[[nodiscard]] inline SmallCall begin_small(Endpoint& endpoint, const CollectiveCall& call,
                                           const CallPlan& plan) {
  endpoint.open(plan);
  SmallCall small{endpoint, call, plan};
  if (!plan.in_line) {
    small.way = SmallWay::kSlot;
    small.slot_number = endpoint.next_slot();
  }
  const auto members = static_cast<std::size_t>(endpoint.position().size);
  if (endpoint.has_levels() || members * plan.bytes >= kLeastForOne) [[unlikely]]
    small.way = choose_small_way(endpoint, call, plan);
  announce_small(small);
  return small;
}

/// The same of one in which members that only send do not wait. Not inline, so that others stay short.
[[nodiscard]] SmallCall begin_eager(Endpoint& endpoint, const CollectiveCall& call, const CallPlan& plan);

/// Makes the result. After all have announced the same call, and, if it is in two steps, all is reduced.
inline void finish_small(const SmallCall& small) {
  if (small.endpoint.is_plain() && !small.in_two_steps()) [[likely]]
    return collect_result(small);
  finish_among_many(SmallCall(small));  // a copy, so that this one can stay in registers
}

}  // namespace cohort::node
