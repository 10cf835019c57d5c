// Every collective of the strategy layer against every other one: on one odd replica, and on one odd worker.
// No pair ends without an error that names both, on all replicas and workers.
#pragma once

#include <cohort/cluster/bootstrap.h>

namespace cohort::testing {

/// Among the replicas of a MirroredStrategy, and among those of a strategy that keeps single copies.
void check_odd_replicas(int replicas);

struct OddWorkers {
  int every = 1;           ///< each so-many-th pair is tried
  bool are_known = false;  ///< communicators know the workers' numbers, which those of threads do not
};

/// Every worker calls it.
void check_odd_workers(Bootstrap& worker, int devices, const OddWorkers& options);

/// Workers that make variables in another order, with other names, shapes or kinds, and those that may name
/// them as they like.
void check_variable_names(Bootstrap& worker, int devices);

/// Workers that distribute different datasets.
void check_odd_datasets(Bootstrap& worker, int devices);

}  // namespace cohort::testing
