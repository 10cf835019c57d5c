// How many lanes carry a long call: with more of them more members send and reduce at once, until they fill
// the node's link; with still more, messages get shorter, and more flows share the link, for nothing. The
// number for which [Bayatpour et al., SC'17, DPML] choose their leaders.
#pragma once

#include <span>

namespace cohort::network {

/// What was measured with so many members of each node sending and receiving at once.
struct LaneRate {
  int lanes = 1;
  double seconds_per_byte = 0;  ///< of all that one node sends; it receives as much meanwhile
};

/// The fewest lanes with which an all-reduce is expected to be nearly as fast as with the best number. A byte
/// crosses the link twice, and each lane's member reduces its part. There is at least one rate.
[[nodiscard]] const LaneRate& choose_lanes(std::span<const LaneRate> rates, double reduce_seconds_per_byte);

/// Whether still more lanes are worth a measurement: the last ones gained something over those before. The
/// rates are of growing numbers.
[[nodiscard]] bool may_gain_from_more_lanes(std::span<const LaneRate> rates, double reduce_seconds_per_byte);

}  // namespace cohort::network
