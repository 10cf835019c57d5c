// The figures that are reported of a series of times: median, percentile and bandwidth. The median and
// the percentiles are order statistics, so a few interrupted iterations do not move them.
//
// Bandwidths are in GB/s = 1e9 bytes per second. The algorithm bandwidth is the size of the largest
// buffer of one member over the time. The bus bandwidth scales it by a factor per collective, so that
// its peak does not depend on the number of members and compares with the speed of one member's link
// (nccl-tests, doc/PERFORMANCE.md).
#pragma once

#include <cstddef>
#include <span>

namespace cohort::bench {

/// The middle value; the mean of the two middle ones of an even number. `values` is not empty.
[[nodiscard]] double median(std::span<const double> values);

/// The smallest value that is not below `percent` per cent of all (nearest rank), so it is one
/// that occurred; with fewer than 100 values the 99th percentile is the largest.
[[nodiscard]] double percentile(std::span<const double> values, double percent);

/// Zero when nothing was moved.
[[nodiscard]] constexpr double algorithm_bandwidth(std::size_t bytes, double microseconds) {
  return bytes == 0 ? 0 : static_cast<double>(bytes) / (microseconds * 1e3);
}

/// All-reduce: each element crosses a link 2(n-1) times, over the n members' links.
[[nodiscard]] constexpr double bus_factor_twice_across(int members) { return 2.0 * (members - 1) / members; }

/// Where every member keeps its own block: the n-1 others cross each member's link, or the root's.
[[nodiscard]] constexpr double bus_factor_all_but_own(int members) {
  return static_cast<double>(members - 1) / members;
}

/// Broadcast and reduce: the whole buffer crosses the root's link once, when there is another member.
[[nodiscard]] constexpr double bus_factor_once(int members) { return members > 1 ? 1 : 0; }

/// Barrier: there is only latency.
[[nodiscard]] constexpr double bus_factor_none(int /*members*/) { return 0; }

}  // namespace cohort::bench
