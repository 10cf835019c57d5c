// Gather and scatter along a lane by a binomial tree [van de Geijn 1991], for data that is
// short: a member passes on what belongs to the members below it in the tree, whose steps follow its own.
// Cost  log2(p) alpha + (p-1)/p n beta, n bytes at the root.
//
// "In steps" means counted round the circle from the root, which is step 0.
#pragma once

#include <cohort/collective/task.h>

#include "lane.h"
#include "node_blocks.h"

namespace cohort::network {

/// The room that a member needs for its data.
[[nodiscard]] std::size_t binomial_room(const Lane& lane, const NodeBlocks& blocks, int root);

/// `data` has this node's blocks, and room for those of the steps after it: at the root it gets all of them,
/// in steps.
[[nodiscard]] Task<> binomial_gather(Lane lane, const NodeBlocks& blocks, int root, std::byte* data, int tag);

/// The root's `data` has all blocks, in steps. Elsewhere it gets this node's blocks, at the beginning.
[[nodiscard]] Task<> binomial_scatter(Lane lane, const NodeBlocks& blocks, int root, std::byte* data,
                                      int tag);

}  // namespace cohort::network
