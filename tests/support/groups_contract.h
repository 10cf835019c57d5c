// What groups that are split off a Communicator must do, whatever carries it: the same
// checks run with threads as members and with ranks. All members call a check together;
// each reports through GoogleTest what it finds wrong.
#pragma once

#include <functional>

#include <cohort/collective/communicator.h>

namespace cohort::testing {

/// Members of one color, in the order of their keys, with the same infos; every kind of call among them.
/// Colors that are all alike, all different, of uneven groups, and none.
void check_split(Communicator& communicator);

/// Groups of groups, calls of all of them in flight at once, and gone in an order that each member chooses.
void check_groups_beside_each_other(Communicator& communicator);
/// The same where all members choose one order, as NCCL needs it.
void check_groups_in_one_order(Communicator& communicator);

/// A member that makes another call than `split`, and one that does not come while the communicator has a
/// short time-out, are named. Both leave the communicator unusable.
void check_split_without_agreement(Communicator& communicator);
void check_split_without_the_last(Communicator& communicator);

/// Errors in a group name its members by their ranks there and their workers, and end the group alone.
void check_errors_stay_in_their_group(Communicator& communicator);

/// A member that has stopped is named before one that waits for it in a group, by all who wait in a
/// communicator over several nodes. `driver`: of the call in the group. `meet` returns once all members have
/// called it.
enum class Driver { kCaller, kProgressThread };
void check_stopped_before_waiting(Communicator& communicator, Driver driver,
                                  const std::function<void()>& meet);

/// A message of that many elements of 4 bytes that was not received does not turn up in a later group of the
/// same members. For communicators whose messages of that length do not wait for their receiver.
void check_messages_stay_in_their_group(Communicator& communicator, std::int64_t elements);

/// A member that leaves a group by an exception ends the group's calls, and no other's.
void check_leaving_a_group(Communicator& communicator);

}  // namespace cohort::testing
