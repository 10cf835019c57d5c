// How fast this machine's memory could do an in-place all-reduce, if nothing had to be agreed
// on: every member reads its share of all members' buffers and writes the result back to each,
// which is reading and writing as many bytes as a buffer has. Here all members do so at once,
// each on memory of its own, so that nothing crosses between cores and nobody waits.
#pragma once

#include <cstddef>

#include "team.h"
#include "tick_clock.h"

namespace cohort::bench {

/// From this size on, memory and not the caches is what counts.
inline constexpr std::size_t kMemoryLimitFrom = std::size_t{64} << 20;

struct MemoryLimitProblem {
  std::size_t bytes = 0;  ///< of each member's buffer
  int members = 1;
  bool huge_pages = true;
};

/// The time in microseconds of the slowest member; the least of several, since it is a limit. Called by all
/// members, at least two and all on one node, and the same on all of them.
/// @throws std::bad_alloc when memory is short.
[[nodiscard]] double measure_memory_limit(const MemoryLimitProblem& problem, const Team& team,
                                          const TickClock& clock);

}  // namespace cohort::bench
