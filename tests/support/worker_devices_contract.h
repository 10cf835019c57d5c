// What replicas on several devices of several workers do together, whatever the workers are: threads of this
// process or ranks. Every worker calls these functions, all with the same number of devices. The checks of
// errors leave the cluster usable.
#pragma once

#include <cohort/cluster/bootstrap.h>

namespace cohort::testing {

void check_numbering(Bootstrap& worker, int devices);
void check_reduce(Bootstrap& worker, int devices);
void check_reduce_along_an_axis(Bootstrap& worker, int devices);
void check_batch_reduce_to(Bootstrap& worker, int devices);
void check_slices(Bootstrap& worker, int devices);
void check_gather(Bootstrap& worker, int devices);
void check_collectives_in_replicas(Bootstrap& worker, int devices);
void check_merge_call(Bootstrap& worker, int devices);
void check_optimizers(Bootstrap& worker, int devices);
void check_input(Bootstrap& worker, int devices);

/// The first worker is in a collective of the workers, the others' replicas in one of their own.
void check_worker_ahead(Bootstrap& worker, int devices);

/// A reduction that may take longer than the strategy's other calls waits for a worker that is late.
void check_deadline_of_a_call(Bootstrap& worker, int devices);

/// The last replica of all throws; all others are released, in collectives of replicas and of workers.
void check_failing_replica(Bootstrap& worker, int devices);
void check_failing_merge(Bootstrap& worker, int devices);

/// The last replica of all cannot make a collective, and goes on: the others do not take its next one for it.
void check_unmade_collective(Bootstrap& worker, int devices);

/// The replicas of the last worker differ, which the other workers cannot see.
void check_replicas_that_differ(Bootstrap& worker, int devices);

}  // namespace cohort::testing
