// What every Communicator must make of the options of a call. All members call a check
// together; each reports through GoogleTest what it finds wrong.
#pragma once

#include <cohort/collective/communicator.h>

namespace cohort::testing {

/// A communicator that would wait for long, and a call that does not: the last member stays away, and the
/// others are told so. Leaves the communicator unusable.
void check_shorter_deadline(Communicator& communicator);

/// A communicator with a time-out of 0.2 s, and calls that wait for longer, or for ever, until the last
/// member comes.
void check_longer_deadline(Communicator& communicator);

}  // namespace cohort::testing
