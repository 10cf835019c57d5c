// A sum in the order of the ranks where those of each node follow the ones of the node before: it goes from
// the first node to the last, each of which adds what its members contribute, and the result comes back along
// the same nodes. While one part is on its way back, others are on their way there.
//
// Cost of n bytes over p nodes, in parts of s bytes:  2 (p-1) (alpha + s beta) for the first part,
// and 2 n beta for all of them, or n beta for two nodes: each end has but one neighbour.
// However many members a node has, only sums travel.
#pragma once

#include <cstddef>

#include <cohort/collective/task.h>

#include "lane_algorithm.h"

namespace cohort::network {

extern const LaneAlgorithm kChain;

/// The input is the contribution of this node's first member; those of the others follow, each `stride` bytes
/// after the one before. Not for 16-bit elements: every sum on the way would be rounded.
[[nodiscard]] Task<> chain_all_reduce(Lane lane, const Topology& topology, Part part, std::size_t stride,
                                      Arithmetic arithmetic);

}  // namespace cohort::network
