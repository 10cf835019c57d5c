// What every Communicator must do, in any implementation: the same checks run with threads as members and
// with ranks. All members call a check together; each reports through GoogleTest what it finds wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

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

// What it makes of the options of a call.

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

// What it does with COHORT_CHECK_BUFFERS=true, as seen by one member.

/// Member 0 changes a tensor of a call in flight and gets an error that says so; the others get what it
/// held at the start, and the communicator works on.
void check_changed_tensors(Communicator& communicator);

/// Calls whose Works were dropped have their results once the communicator is destroyed.
void check_dropped_works(std::unique_ptr<Communicator> communicator);

// What groups that are split off it must do, whatever carries it.

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

// What packed all-reduces over it must do.

/// What a communicator of GPUs measures is the same on all members, and measured once; for CPUs nothing is.
void check_cost(Communicator& communicator);

/// BatchReducer: lists of mixed dtypes, lengths and emptiness, for limits from one byte to more than
/// everything, in place and into new tensors: the bits of an all-reduce per tensor.
void check_batches(Communicator& communicator);

/// A list with one tensor on each of the member's `devices`, which may be numbered otherwise on others.
void check_batches_on_several_devices(Communicator& communicator, std::span<const Device> devices);

/// Lists of as many elements in other shapes are a mismatch. Leaves a communicator of several members
/// unusable.
void check_batch_mismatch(Communicator& communicator);

/// GradientBuckets over many steps, announced in a different order on each member, from buckets and from
/// tensors of the caller: the bits must be those of an all-reduce per tensor.
void check_buckets(Communicator& communicator);

/// A tensor that goes in several calls, in a batch and in a bucket.
void check_huge_tensors(Communicator& communicator);

/// After the first steps no pages are added to the heap.
void check_memory_stays(Communicator& communicator);

/// What the caller does wrong is refused and changes nothing: the step can still be completed.
void check_bucket_arguments(Communicator& communicator);

/// Members that describe other gradients: an error on all of them that names the one that differs, and that
/// every later call repeats. Leaves a communicator of several members unusable.
void check_bucket_mismatch(Communicator& communicator);

// What it promises if its results do not depend on the placement: the bits of a plain loop over the members,
// by rank.

/// Every legal operator and dtype, of few elements, in and out of place: all-reduce, reduce, reduce-scatter.
void check_rank_order(Communicator& communicator);

/// Sizes around those at which the protocol or algorithm changes, up to beyond a megabyte; memory of Cohort's
/// own and ordinary memory; blocking, and several in flight.
void check_rank_order_of_sizes(Communicator& communicator);

/// Lists of tensors, packed in several ways, and gradients in buckets.
void check_rank_order_of_packs(Communicator& communicator);

// Many collectives in flight on several communicators at once, in an order that a seed
// decides. Within a communicator all members start them in the same order, as they must;
// between communicators every member has an order of its own. Every result is checked.

enum class WaitOrder {
  kSame,    ///< every member waits for them in the same random order
  kPolled,  ///< every member asks in a random order of its own which are done, and never waits
  kOwn,     ///< every member waits in a random order of its own
};

/// Adds all members in reverse, and the group of this member among those of odd and of even ranks.
inline void add_groups(std::vector<std::unique_ptr<Communicator>>& communicators) {
  Communicator& everyone = *communicators.front();
  communicators.push_back(everyone.split(0, -everyone.rank()));
  communicators.push_back(everyone.split(everyone.rank() % 2));
}

/// All members call it together, with equally many communicators and the same seed; the first has all
/// members, others may be groups of some of them. Reports through GoogleTest what it finds wrong.
void check_interleaved(std::span<const std::unique_ptr<Communicator>> communicators, unsigned seed,
                       WaitOrder order);

// Very many all-reduces one after the other: each result is checked, and the memory of the process must not
// grow once it has warmed up. The environment says how many.

/// As many as SOAK_SMALL says, by default 10^5.
[[nodiscard]] std::int64_t small_soak_rounds();
/// As many as SOAK_LARGE says, by default 10.
[[nodiscard]] std::int64_t large_soak_rounds();

/// All-reduces of a few elements, some of them several at a time. All members call it together; it
/// reports through GoogleTest what it finds wrong.
void soak_small(Communicator& communicator, std::int64_t rounds);

/// All-reduces of 16 MiB.
void soak_large(Communicator& communicator, std::int64_t rounds);

}  // namespace cohort::testing
