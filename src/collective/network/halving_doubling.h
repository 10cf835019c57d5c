// Halving-doubling [Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005, section 4.4]: a
// reduce-scatter by recursive halving, then an all-gather by recursive doubling. Cost
// 2 log2(p) alpha + (p-1)/p n (2 beta + gamma): the ring's bytes in fewer rounds, where
// p is a power of two; others fold first (fold.h), which costs all bytes twice more.
#pragma once

#include <cohort/collective/task.h>

#include "lane_algorithm.h"

namespace cohort::network {

extern const LaneAlgorithm kHalvingDoubling;

[[nodiscard]] Task<> halving_doubling_all_reduce(Lane lane, Part part, Arithmetic arithmetic);

/// The output of the root gets the result, by halving and then along a tree; those of the others are used on
/// the way.
[[nodiscard]] Task<> halving_reduce(Lane lane, Part part, int root, Arithmetic arithmetic);

/// The same backwards: all outputs get that of the root, in blocks along the tree and then by doubling.
[[nodiscard]] Task<> halving_broadcast(Lane lane, Part part, int root, std::size_t element_bytes);

}  // namespace cohort::network
