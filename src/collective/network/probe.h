// Measures the network and the processor, within the first collective between nodes
// that needs the figures: the members of neighbouring nodes exchange messages in pairs, all at the same time,
// as collectives do. The slowest member counts. First the leaders alone, then members of more and more lanes
// together, which shows how many of them it takes to fill a node's link. With more lanes more members send
// and reduce at once, until they fill the link; with still more, messages get shorter, and more flows share
// the link, for nothing. The number is the one for which [Bayatpour et al., SC'17, DPML] choose their
// leaders.
#pragma once

#include <chrono>
#include <functional>
#include <span>

#include <cohort/collective/task.h>

#include "collective/choice/tuning_figures.h"
#include "lane.h"
#include "topology.h"

namespace cohort::network {

/// How long a probe may take; what is not found out by then keeps its built-in value.
inline constexpr std::chrono::milliseconds kProbeBudget{20};

/// Replaces each value by the largest of all members; executed by all of them.
using TakeMaximum = std::function<Task<>(std::span<double> values)>;

/// Executed by all members; those with a lane measure, and all get the same table. A figure keeps its
/// built-in value if it differs little from it, or a lot from one measurement to the next.
[[nodiscard]] Task<TuningTable> probe(Wire& wire, const Topology& topology, TakeMaximum take_maximum);

// ---- how many lanes carry a long call ----

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
