// Reduce-scatter over several nodes: every node reduces each member's block, and sends it to that member,
// which sums what the nodes sent. Pairwise, in segments; cost, for p nodes and n bytes of all blocks: (p-1)
// alpha + (p-1)/p n beta + n gamma, on each node's link. few_rounds.h is for data that is short.
//
// 16-bit elements are rounded once per node, and once more in the sum of the nodes.
#pragma once

#include "hierarchy_context.h"

namespace cohort::network {

/// All members have called it alike; `call` must outlive it.
[[nodiscard]] Task<> two_level_reduce_scatter(HierarchyContext& context, const CollectiveCall& call);

}  // namespace cohort::network
