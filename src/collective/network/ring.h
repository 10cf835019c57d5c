// The ring [Patarasuk, Yuan 2009]: every member sends to the next and receives from the
// one before, all at the same time, so both directions of every link are busy and no
// byte crosses one twice. The fewest bytes that an all-reduce can move, in the most
// rounds: the choice for long messages.
//
//   reduce-scatter   (p-1) alpha + (p-1)/p n (beta + gamma)
//   all-gather       (p-1) alpha + (p-1)/p n beta
//   all-reduce       both, one after the other
#pragma once

#include <cohort/collective/task.h>

#include "lane_algorithm.h"

namespace cohort::network {

extern const LaneAlgorithm kRing;

[[nodiscard]] Task<> ring_all_reduce(Lane lane, Part part, Arithmetic arithmetic);

/// Block `index` of each member's output goes to its place in the output of `root`.
[[nodiscard]] Task<> gather_blocks(Lane lane, Part part, int root, std::size_t element_bytes);

/// Block `index` of `EvenBlocks(elements, size)` of the output gets that block of the result; the other
/// blocks are used on the way.
[[nodiscard]] Task<> ring_reduce_scatter(Lane lane, Part part, Arithmetic arithmetic);

/// Each member has block `index` of its output, and gets all others.
[[nodiscard]] Task<> ring_all_gather(Lane lane, Part part, std::size_t element_bytes);

}  // namespace cohort::network
