// What every communicator does with COHORT_CHECK_BUFFERS=true, as seen by one member.
#pragma once

#include <memory>

#include <cohort/collective/communicator.h>

namespace cohort::testing {

/// Member 0 changes a tensor of a call in flight and gets an error that says so; the others get what it
/// held at the start, and the communicator works on.
void check_changed_tensors(Communicator& communicator);

/// Calls whose Works were dropped have their results once the communicator is destroyed.
void check_dropped_works(std::unique_ptr<Communicator> communicator);

}  // namespace cohort::testing
