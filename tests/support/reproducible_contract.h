// What a Communicator promises if its results do not depend on the placement: the bits of
// a plain loop over the members, by rank. All members call a check together; each
// reports through GoogleTest what it finds wrong.
#pragma once

#include <cohort/collective/communicator.h>

namespace cohort::testing {

/// Every legal operator and dtype, of few elements, in and out of place: all-reduce, reduce, reduce-scatter.
void check_rank_order(Communicator& communicator);

/// Sizes around those at which the protocol or algorithm changes, up to beyond a megabyte; memory of Cohort's
/// own and ordinary memory; blocking, and several in flight.
void check_rank_order_of_sizes(Communicator& communicator);

/// Lists of tensors, packed in several ways, and gradients in buckets.
void check_rank_order_of_packs(Communicator& communicator);

}  // namespace cohort::testing
