// Carries out a collective whose members' memory is all in this process: the calls of
// every member, by rank, are turned into copies and reductions on the calling thread.
#pragma once

#include <span>

#include <cohort/collective/collective_call.h>

namespace cohort {

/// The calls must agree (see `explain_mismatch`). Not for send and receive.
void execute_locally(std::span<const CollectiveCall> calls);

}  // namespace cohort
