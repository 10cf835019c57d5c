// Recursive doubling [Thakur, Rabenseifner, Gropp 2005, section 4.1]: in round k members
// 2^k apart exchange everything that they have. Cost  log2(p) (alpha + n beta + n gamma):
// the fewest rounds, so the choice for short parts. Between two members no algorithm moves
// fewer bytes, but the ring reduces half as many, and is chosen for long parts. Where p is
// no power of two, some members fold first (fold.h).
#pragma once

#include <cohort/collective/task.h>

#include "lane_algorithm.h"

namespace cohort::network {

extern const LaneAlgorithm kRecursiveDoubling;

[[nodiscard]] Task<> recursive_doubling_all_reduce(Lane lane, Part part, Arithmetic arithmetic);

}  // namespace cohort::network
