// Collectives over several nodes whose data is long. All members have called them alike, and `call` must
// outlive them. Within a node they go through shared memory, and between nodes along lanes
// (lane_algorithms.h) or pairwise, in p-1 rounds for p nodes. Data that is short takes few_rounds.h.
#pragma once

#include "hierarchy_context.h"

namespace cohort::network {

// ---- collectives that move data and reduce nothing (two_level_movement.cpp) ----
//
// Data for all members of another node crosses to it once, to one member, which spreads it there; data for
// one member goes to it straight from its owner.

/// In segments: the root's node gets all, each lane carries its share, the other nodes gather. Cost  n beta,
/// and the latency of one segment.
[[nodiscard]] Task<> two_level_broadcast(HierarchyContext& context, const CollectiveCall& call);

/// Each block goes to one member of every other node, in steps if it is long (pairwise_exchange.h). Cost
/// (p-1)/p n beta.
[[nodiscard]] Task<> two_level_all_gather(HierarchyContext& context, const CollectiveCall& call);

/// Pairwise between nodes; a long all-to-all in steps (pairwise_exchange.h).
[[nodiscard]] Task<> two_level_gather_or_scatter(HierarchyContext& context, const CollectiveCall& call);
[[nodiscard]] Task<> two_level_all_to_all(HierarchyContext& context, const CollectiveCall& call);

// ---- collectives that reduce (two_level_reduce.cpp) ----

/// All-reduce and reduce, in segments. Of each segment, the members of a node reduce a share apiece; every
/// share then travels along its own lane; and the node gathers the results. While one segment is on the
/// network, the next is reduced on the node and the one before is gathered.
///
/// Cost of n bytes with l lanes: the lanes share a node's link but reduce side by side, so the algorithm's
/// beta counts for n bytes, its gamma for n/l, and there is the latency of one segment. The work on the node
/// hides behind a slow network. With a fast one it adds up, since one thread of each member does both.
///
/// 16-bit elements are rounded once per level and node on the way: within a node all members are summed in
/// float32, between nodes each pass of the lane's algorithm rounds.
///
/// Where the members must be combined in the order of their ranks, the members of a node exchange
/// contributions instead of reducing them, and the lane combines.
[[nodiscard]] Task<> two_level_all_reduce(HierarchyContext& context, const CollectiveCall& call);
[[nodiscard]] Task<> two_level_reduce(HierarchyContext& context, const CollectiveCall& call);

/// Every node reduces each member's block, and sends it to that member, which sums what the nodes sent.
/// Pairwise, in segments; cost, for p nodes and n bytes of all blocks:  (p-1) alpha + (p-1)/p n beta + n
/// gamma, on each node's link.
///
/// 16-bit elements are rounded once per node, and once more in the sum of the nodes.
[[nodiscard]] Task<> two_level_reduce_scatter(HierarchyContext& context, const CollectiveCall& call);

}  // namespace cohort::network
