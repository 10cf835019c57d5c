// Long collectives through cells, piece by piece: for buffers that no other member can access, and where
// that is faster than to work on them where they are.
#pragma once

#include <cohort/collective/task.h>

#include "endpoint.h"

namespace cohort::node {

/// For the counter of lines: what `collect` reads of others.
void note_collected(const Endpoint& endpoint, const CollectiveCall& call, const Range& range);

/// A long call in pieces. Cost per member and piece: one copy in, one pass over all members' pieces.
/// Writing runs one piece ahead of reading, so that both ends of the crossing work at once.
Task<> exchange_in_pieces(Endpoint& endpoint, const CollectiveCall& call, ReductionKernel kernel);

}  // namespace cohort::node
