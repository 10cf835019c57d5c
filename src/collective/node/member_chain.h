// An all-reduce of memory that only its owner reaches, on a node whose members share cores. Each piece of the
// sum passes through the members in the order of their ranks: one takes it from the member before it, adds
// its own, and passes it on. All take the result from the last one.
//
// On shared cores a member pays for each time that it waits, with a turn of all others on its core. It waits
// once for the member before it and once for the result if its turn comes when all of that is there, and not
// twice for all others in each step.
#pragma once

#include <cstddef>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/task.h>

#include "endpoint.h"

namespace cohort::node {

/// Whether a call of `bytes` on each member that would go in shares, or by the kernel's copies, goes this
/// way: there are enough pieces for the number of members, they fit the members' cells, and a sum may be
/// rounded after each member.
[[nodiscard]] bool goes_along_members(const Endpoint& endpoint, const CollectiveCall& call,
                                      std::size_t bytes) noexcept;

/// After all have announced the call.
Task<> reduce_along_members(Endpoint& endpoint, const CollectiveCall& call);

}  // namespace cohort::node
