// Collectives through slots and cells: every member copies its contribution to where
// the others read it. For small contributions, where that costs one crossing of the
// cache lines and a single wait, and for buffers that no other member can access.
#pragma once

#include <cohort/collective/task.h>

#include "endpoint.h"

namespace cohort::node {

/// Whether the call goes in one piece, through the line or the slot.
[[nodiscard]] inline bool fits_slot(std::size_t contributed_bytes) noexcept {
  return contributed_bytes <= kSlotBytes;
}

/// The parts of such a call, around the waits for all members.
class SmallCall {
 public:
  /// Opens the collective, contributes and announces it.
  SmallCall(Endpoint& endpoint, const CollectiveCall& call, const CallPlan& plan);

  /// Whether many members reduce it in shares.
  [[nodiscard]] bool in_shares() const noexcept { return in_shares_; }
  /// Then, after all have announced the same call: does this member's. All are done with theirs before
  /// `finish`.
  void reduce_own_share();

  /// Makes the result. After all have announced the same call.
  void finish();

 private:
  void choose_way() noexcept;
  [[nodiscard]] bool needs_contributions() const;
  void take_result();
  [[nodiscard]] const std::byte* buffer_of(int member) const noexcept;
  [[nodiscard]] std::byte* own_buffer() const noexcept;
  [[nodiscard]] std::span<const std::byte*> find_buffers() const noexcept;

  Endpoint& endpoint_;
  const CollectiveCall& call_;
  const CallPlan plan_;
  bool in_line_;
  bool in_shares_ = false;
  bool reduced_on_the_way_ = false;  ///< at the top of the tree
  bool from_root_ = false;           ///< along the tree, the root's contribution alone
  std::uint64_t slot_ = 0;
};

/// For the counter of lines: what `collect` reads of others.
void note_collected(const Endpoint& endpoint, const CollectiveCall& call, const Range& range);

/// A long call in pieces. Cost per member and piece: one copy in, one pass over all members' pieces.
/// Writing runs one piece ahead of reading, so that both ends of the crossing work at once.
Task<> exchange_in_pieces(Endpoint& endpoint, const CollectiveCall& call, ReductionKernel kernel);

}  // namespace cohort::node
