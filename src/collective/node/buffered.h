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

/// The two halves of such a call, around the wait for all announcements.
class SmallCall {
 public:
  /// Opens the collective, contributes and announces it.
  SmallCall(Endpoint& endpoint, const CollectiveCall& call, const CallPlan& plan);

  /// Makes the result. After all have announced the same call.
  void finish();

 private:
  [[nodiscard]] std::byte* buffer_of(int member) const noexcept;

  Endpoint& endpoint_;
  const CollectiveCall& call_;
  const CallPlan plan_;
  bool in_line_;
  std::uint64_t slot_ = 0;
};

/// A long call in pieces. Cost per member and piece: one copy in, one pass over all members' pieces.
/// Writing runs one piece ahead of reading, so that both ends of the crossing work at once.
Task<> exchange_in_pieces(Endpoint& endpoint, const CollectiveCall& call, ReductionKernel kernel);

}  // namespace cohort::node
