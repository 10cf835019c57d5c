// Reduce along a lane. The output of the root gets the result; those of the others are used on the way.
//
// Binomial tree: in each round half of the members that are left send what they have to the other half. Cost
// log2(p) (alpha + n (beta + gamma)): the choice for short parts.
//
// Halving [Rabenseifner 2004]: the reduce-scatter of halving-doubling, and then the blocks to the root along
// the same tree. Cost  2 log2(p) alpha + (p-1)/p n (2 beta + gamma), where p is a power of two; others fold
// first (fold.h).
//
// Ring: its reduce-scatter, and then each block to the root at once. Cost  p alpha + (p-1)/p n (2 beta +
// gamma): the choice for long parts of few members, since no member sends a byte twice.
#pragma once

#include <cohort/collective/task.h>

#include "lane_algorithm.h"

namespace cohort::network {

extern const LaneAlgorithm kBinomialReduce;
extern const LaneAlgorithm kHalvingReduce;
extern const LaneAlgorithm kRingReduce;

[[nodiscard]] Task<> binomial_reduce(Lane lane, Part part, int root, Arithmetic arithmetic);
[[nodiscard]] Task<> ring_reduce(Lane lane, Part part, int root, Arithmetic arithmetic);

}  // namespace cohort::network
