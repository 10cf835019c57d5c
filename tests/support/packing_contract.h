// What packed all-reduces must do over any Communicator: the same checks run with threads
// and with ranks as members. All members call a check together; each reports through
// GoogleTest what it finds wrong.
#pragma once

#include <span>

#include <cohort/collective/communicator.h>

namespace cohort::testing {

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

}  // namespace cohort::testing
