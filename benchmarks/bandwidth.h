// Bandwidth as collectives report it, in GB/s = 1e9 bytes per second. The algorithm bandwidth
// is the size of the largest buffer of one member over the time; the bus bandwidth scales it
// by a factor per collective, so that its peak does not depend on the number of members and
// compares with the speed of one member's link (nccl-tests, doc/PERFORMANCE.md).
#pragma once

#include <cstddef>

namespace cohort::bench {

[[nodiscard]] constexpr double algorithm_bandwidth(std::size_t bytes, double microseconds) {
  return static_cast<double>(bytes) / (microseconds * 1e3);
}

/// Each element crosses a link 2(n-1) times, over the n members' links.
[[nodiscard]] constexpr double all_reduce_bus_factor(int members) { return 2.0 * (members - 1) / members; }

}  // namespace cohort::bench
