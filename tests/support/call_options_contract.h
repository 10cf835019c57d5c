// What every Communicator must make of the options of a call. All members call a check
// together; each reports through GoogleTest what it finds wrong.
#pragma once

#include <cohort/collective/communicator.h>

namespace cohort::testing {

/// A communicator that would wait for long, and a call that does not: the last member stays away, and the
/// others get an error that says so. Leaves the communicator unusable.
void check_shorter_deadline(Communicator& communicator);

/// A communicator with a time-out of 0.2 s, and calls that wait for longer, or for ever, until the last
/// member arrives.
void check_longer_deadline(Communicator& communicator);

/// Urgent calls end before normal ones that were started earlier, and in their own order; all results are
/// right. `overtakes` is false where the normal call does not yield, so that it may come first.
void check_urgent_calls(Communicator& communicator, bool overtakes = true);

/// An urgent call of the last member is a normal one of the others, or lies elsewhere in the order of all
/// calls: each ends in an error that says so. Leave the communicator unusable.
void check_priority_mismatch(Communicator& communicator);
void check_order_mismatch(Communicator& communicator);

/// As check_missing, in an urgent call beside a normal one. Leaves the communicator unusable.
void check_missing_in_urgent_call(Communicator& communicator);

}  // namespace cohort::testing
