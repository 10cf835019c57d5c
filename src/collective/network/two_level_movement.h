// Collectives over several nodes that move data and reduce nothing. Data for all
// members of another node crosses to it once, to one member, which spreads it there;
// data for one member goes to it straight from its owner.
//
//   broadcast   in segments: the root's node gets all, each lane carries its share, the other
//               nodes gather. n beta and the latency of one segment.
//   all-gather  each block to one member of every other node. (p-1)/p n beta for p nodes.
//   gather, scatter, all-to-all  pairwise between nodes, through shared memory within.
//   Long all-gathers and all-to-alls go in steps (pairwise_exchange.h).
//
// All but the broadcast take p-1 rounds; few_rounds.h is for data that is short.
#pragma once

#include "hierarchy_context.h"

namespace cohort::network {

/// All members have called it alike; `call` must outlive them.
[[nodiscard]] Task<> two_level_broadcast(HierarchyContext& context, const CollectiveCall& call);
[[nodiscard]] Task<> two_level_all_gather(HierarchyContext& context, const CollectiveCall& call);
[[nodiscard]] Task<> two_level_gather_or_scatter(HierarchyContext& context, const CollectiveCall& call);
[[nodiscard]] Task<> two_level_all_to_all(HierarchyContext& context, const CollectiveCall& call);

}  // namespace cohort::network
