// Executes a collective by the protocol that suits it. For a call that fits a slot the size alone decides;
// for others the choice follows from what all members have announced about their buffers, so that all choose
// alike.
#pragma once

#include <cohort/collective/task.h>

#include "endpoint.h"
#include "protocol.h"

namespace cohort::node {

/// The whole collective of one member. `call` must outlive it.
Task<> execute(Endpoint& endpoint, const CollectiveCall& call);

/// The same for a caller that waits at once: small calls run without a coroutine.
void execute_now(Endpoint& endpoint, const CollectiveCall& call);

/// A collective by this protocol, whatever its size, where the members' buffers allow it.
Task<> execute_by(Endpoint& endpoint, const CollectiveCall& call, Protocol protocol);

}  // namespace cohort::node
