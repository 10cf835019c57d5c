// All-reduce and reduce over nodes with several members each, in segments. Of each
// segment, the members of a node reduce a share apiece; every share then travels along
// its own lane; and the node gathers the results. While one segment is on the network, the
// next is reduced on the node and the one before is gathered.
//
// Cost of n bytes with l lanes: the lanes share a node's link but reduce side by side, so the
// algorithm's beta counts for n bytes, its gamma for n/l, and there is the latency of one
// segment. The work on the node hides behind a slow network. With a fast one it adds up, since
// one thread of each member does both.
//
// 16-bit elements are rounded once per level and node on the way: within a node all
// members are summed in float32, between nodes each pass of the lane's algorithm rounds.
//
// Where the members must be combined in the order of their ranks, the members of a node
// exchange contributions instead of reducing them, and the lane combines.
#pragma once

#include "hierarchy_context.h"

namespace cohort::network {

/// All members have called it alike. Both take `call` by reference, which must outlive them.
[[nodiscard]] Task<> two_level_all_reduce(HierarchyContext& context, const CollectiveCall& call);
[[nodiscard]] Task<> two_level_reduce(HierarchyContext& context, const CollectiveCall& call);

}  // namespace cohort::network
