// What collectives cost on one node: for the comparison with algorithms that programs have
// registered. Among Cohort's own protocols, sizes decide (tuning.h).
#pragma once

#include <cohort/collective/algorithm.h>

namespace cohort::node {

/// Of messages through the sender's envelope, and of bytes as they are copied and reduced.
inline constexpr CostConstants kNodeConstants{
    .latency_seconds = 0.5e-6, .seconds_per_byte = 0.1e-9, .reduce_seconds_per_byte = 0.1e-9};

/// How long a call takes whose buffers all members can address: two waits, and the bytes that a member moves.
[[nodiscard]] double built_in_seconds(const CallShape& call, const CostConstants& constants);

}  // namespace cohort::node
