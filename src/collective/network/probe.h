// Measures the network and the processor, within the first collective between nodes
// that needs the figures: the members of neighbouring nodes exchange messages in pairs, all at the same time,
// as collectives do. The slowest member counts. First the leaders alone, then members of more and more lanes
// together, which shows how many of them it takes to fill a node's link.
#pragma once

#include <chrono>
#include <functional>
#include <span>

#include <cohort/collective/task.h>

#include "collective/choice/tuning_table.h"
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

}  // namespace cohort::network
