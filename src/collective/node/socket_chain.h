// All-reduce of long buffers on a machine with several sockets, when these can be reached where they are.
// What crosses between sockets is slow, so each block of a buffer crosses once on its way through the sockets
// and once on its way back: 2 (s - 1) n bytes for s sockets, where members that read from all others move p n
// / 2 and more.
//
// On each socket one member is responsible for a block. That of the first socket reduces what the members of
// its socket have; each next one goes on with what the one before it has; the last one has the result, which
// each takes to the members of its socket. Members are combined in the order of their ranks, as everywhere.
#pragma once

#include <cohort/collective/collective_call.h>
#include <cohort/collective/task.h>

#include "direct.h"
#include "endpoint.h"

namespace cohort::node {

/// Whether a call that could go directly goes this way: all buffers can be reached, the members of each
/// socket have consecutive ranks, and a sum may be rounded at the end of each socket without changing the
/// result.
[[nodiscard]] bool goes_along_sockets(const Endpoint& endpoint, const CollectiveCall& call,
                                      BufferAccess access);

/// After all have announced where their buffers are.
Task<> reduce_along_sockets(Endpoint& endpoint, const CollectiveCall& call);

}  // namespace cohort::node
