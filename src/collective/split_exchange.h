// The exchange with which a split begins: each member tells all others which group it wants to be in, and
// what it contributes to it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <cohort/collective/collective_call.h>
#include <cohort/device/tensor.h>

#include "collective/context_ids.h"

namespace cohort {

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
