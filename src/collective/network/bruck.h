// Collectives along a lane in ceil(log2 p) rounds for any number p of members, for data that
// is short: in the round of distance d = 2^k every member sends to one neighbour d away and receives from
// the other. Each member's data is that of its node. "In steps" means counted round the circle from this
// member's own, which is step 0.
//
// All-gather [Bruck et al. 1997, section 4]: what is known of d nodes goes to the member d before.
// Cost  log2(p) alpha + (p-1)/p n beta, n bytes of all together.
//
// Reduce-scatter: the same messages backwards in time, from the longest distance to the shortest; what
// arrives is combined [Träff 2024, "circulant"; PAT, Jeaugey 2025]. Cost  log2(p) alpha + (p-1)/p n (beta +
// gamma), n bytes on each member.
//
// All-to-all [Bruck et al. 1997, section 3]: what has to go s steps travels in the rounds of the bits of s.
// Cost  log2(p) (alpha + n/2 beta), n bytes on each member.
#pragma once

#include <cohort/collective/task.h>

#include "lane.h"
#include "node_blocks.h"

namespace cohort::network {

/// `data` has this node's blocks, and gets all others' after them, in steps.
[[nodiscard]] Task<> bruck_all_gather(Lane lane, const NodeBlocks& blocks, std::byte* data, int tag);

/// `data` has this member's contribution to all blocks, in steps. Its own ones, at the beginning, become the
/// result; the others are overwritten.
[[nodiscard]] Task<> bruck_reduce_scatter(Lane lane, const NodeBlocks& blocks, std::byte* data,
                                          Arithmetic arithmetic, int tag);

/// `data` has what this node's members have for each node, `bytes_between` of both, in steps forward.
/// Afterwards `result` has what each node had for this one, in steps backward.
[[nodiscard]] Task<> bruck_all_to_all(Lane lane, const NodeBlocks& blocks, const std::byte* data,
                                      std::byte* result, int tag);

}  // namespace cohort::network
