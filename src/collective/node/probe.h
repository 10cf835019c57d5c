// Finds out, within the first collective that needs it, from which sizes on each protocol
// is the fastest on this node: a few milliseconds of collectives, timed on all members.
// Only a protocol that is faster time after time moves a figure away from its built-in
// value, since those were measured for longer.
#pragma once

#include <cohort/collective/task.h>

#include "endpoint.h"

namespace cohort::node {

/// How long a probe may take; what is not found out by then keeps its built-in value.
inline constexpr std::chrono::milliseconds kProbeBudget{25};

/// Makes the endpoint's tuning table, the same on all members: member 0's if it knows one for groups of this
/// shape, what is built in where members outnumber cores, and otherwise what a probe finds. All members are
/// in the same call, of which this is a part.
[[nodiscard]] Task<> agree_on_tuning(Endpoint& endpoint);

}  // namespace cohort::node
