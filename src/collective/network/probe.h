// What the network and the processor do, measured within the first collective between
// nodes that needs to know: every leader exchanges messages with its neighbours in a
// ring, all at the same time, as collectives do. The slowest counts.
#pragma once

#include <chrono>
#include <functional>
#include <span>

#include <cohort/collective/task.h>

#include "collective/choice/tuning_table.h"
#include "lane.h"

namespace cohort::network {

/// How long a probe may take; what is not found out by then keeps its built-in value.
inline constexpr std::chrono::milliseconds kProbeBudget{20};

/// Replaces each value by the largest of all members; carried out by all of them.
using TakeMaximum = std::function<Task<>(std::span<double> values)>;

/// Carried out by all members, of whom those with `leaders` measure; all get the same table. What
/// differs little from its built-in value, or from one time to the next a lot, keeps that value.
[[nodiscard]] Task<TuningTable> probe(const Lane* leaders, TakeMaximum take_maximum);

}  // namespace cohort::network
