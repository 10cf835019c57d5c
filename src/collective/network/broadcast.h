// Broadcast along a lane.
//
// Binomial tree [van de Geijn 1991]: each member that has the data sends it to one
// that has not, so the number that have it doubles in each round. Cost  log2(p)
// (alpha + n beta): the choice for short parts.
//
// Halving, doubling: the root's blocks go along a tree, each member has one, and they gather all by doubling
// (halving_doubling.h). Cost  2 log2(p) alpha + 2 (p-1)/p n beta, where p is a power of two; others fold,
// which costs all bytes twice more: the choice in between.
//
// Scatter and all-gather [van de Geijn, Watts 1995]: the root hands each member a block,
// and a ring gathers them. Cost  2 (p-1) alpha + 2 (p-1)/p n beta: the choice for long
// parts and many members.
#pragma once

#include <cohort/collective/task.h>

#include "lane_algorithm.h"

namespace cohort::network {

extern const LaneAlgorithm kBinomial;
extern const LaneAlgorithm kHalvingBroadcast;
extern const LaneAlgorithm kScatterAllGather;

/// The root's output is the data; the input is not used.
[[nodiscard]] Task<> binomial_broadcast(Lane lane, Part part, int root, std::size_t element_bytes);
[[nodiscard]] Task<> scatter_all_gather_broadcast(Lane lane, Part part, int root, std::size_t element_bytes);

}  // namespace cohort::network
