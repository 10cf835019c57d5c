// What every Communicator must do, in any implementation: the same checks run with threads as members and
// under MPI. All members call a check together; each reports through GoogleTest what it finds wrong.
#pragma once

#include <cohort/collective/communicator.h>

namespace cohort::testing {

/// All-reduce, reduce and reduce-scatter: every legal operator and dtype, empty, one element,
/// odd counts, in and out of place, unaligned starts.
void check_reductions(Communicator& communicator);

/// NaN propagates through MIN and MAX, integers wrap, 16-bit sums are rounded once.
void check_arithmetic(Communicator& communicator);

/// Broadcast, all-gather (even and uneven), all-to-all, gather and scatter, from every root.
void check_data_movement(Communicator& communicator);

/// Every collective at sizes from one element to beyond all caches' first levels, with buffers of
/// Cohort's own memory, of ordinary memory, and of both kinds on different members.
void check_sizes_and_memory(Communicator& communicator);

/// Send and receive around a ring, tags, and a message of the wrong size.
void check_messages(Communicator& communicator);

/// Several collectives in flight, waited for in another order than they were started.
void check_async(Communicator& communicator);

/// A tensor that holds several, with a fingerprint of their layout; then another layout of as many
/// elements, which is a mismatch. Leaves the communicator of several members unusable.
void check_packed(Communicator& communicator);

/// Members `agree` on calls that something else executes, among ordinary calls; then one member is missing,
/// or has made another call: errors name those calls. Each needs a communicator with a short time-out, and
/// leaves one of several members unusable.
void check_agreement_with_a_missing_member(Communicator& communicator);
void check_agreement_on_different_calls(Communicator& communicator);

/// Arguments that are wrong on this member alone are refused before anything is sent.
void check_arguments(Communicator& communicator);

/// Calls that differ end in the same error on every member, which names the one that differs, and the
/// communicator repeats it afterwards. Leaves the communicator unusable.
void check_mismatch(Communicator& communicator);

/// The last member stays away: all others get an error that says so. Needs a
/// communicator with a short time-out, and leaves it unusable.
void check_missing(Communicator& communicator);

}  // namespace cohort::testing
