// Sums in the order of the ranks, whatever their placement on nodes: the contributions travel as they
// are, and the owner of a block combines those of all members in one pass, from the first rank to the last,
// as the members of one node do. So 16-bit elements are rounded once.
//
// Cost of n bytes, with m members on each of p nodes:  alpha + (p-1)/p m n beta + m n gamma.
// With one member on each node, the bytes of a ring's reduce-scatter, in one round.
#pragma once

#include <cstddef>

#include <cohort/collective/task.h>

#include "lane_algorithm.h"

namespace cohort::network {

/// An all-reduce: the reduce-scatter below, and the all-gather of a ring.
extern const LaneAlgorithm kRankOrder;

/// Block `index` of `EvenBlocks(elements, size)` of the output gets that block of the result. The input is
/// the contribution of this node's first member; those of the others follow, each `stride` bytes after the
/// one before. MEAN is divided here.
[[nodiscard]] Task<> rank_order_reduce_scatter(Lane lane, const Topology& topology, Part part,
                                               std::size_t stride, Arithmetic arithmetic);

}  // namespace cohort::network
