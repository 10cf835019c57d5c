// Collectives over several nodes whose data is short, in ceil(log2 p) rounds for p nodes: one member of each
// node, its head, has the data of the whole node, and the heads exchange it along a lane of theirs
// (bruck.h, binomial_tree.h have the sources and costs). The pairwise ones (two_level_movement.h,
// two_level_reduce_scatter.h) take p-1 rounds, from member to member.
//
// Sums are rounded once on the node, and once in each round.
#pragma once

#include "hierarchy_context.h"

namespace cohort::network {

/// An all-gather, gather, scatter, all-to-all or reduce-scatter, or a split, with blocks of one length. All
/// members have called it alike; `call` must outlive it.
[[nodiscard]] Task<> execute_in_few_rounds(HierarchyContext& context, const CollectiveCall& call);

}  // namespace cohort::network
