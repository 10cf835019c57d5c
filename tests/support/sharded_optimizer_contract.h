// What a ShardedOptimizer of several workers does, whatever the workers are: threads of this process or
// ranks. Every worker calls these functions, all with the same number of devices.
#pragma once

#include <cohort/cluster/bootstrap.h>

namespace cohort::testing {

/// Several optimizers, dtypes and ways to aggregate: variables have the bits that the optimizer alone gives
/// them. Between nodes that needs reproducible communication.
void check_bits_of_shares(Bootstrap& worker, int devices, bool reproducible);

/// The same with each of the update options.
void check_options_of_shares(Bootstrap& worker, int devices);

/// Each replica has its share of the slots.
void check_slots_of_shares(Bootstrap& worker, int devices);

/// Replicas that pass other variables, or a gradient that does not fit, are named everywhere.
void check_odd_shares(Bootstrap& worker, int devices);

}  // namespace cohort::testing
