// What SyncBatchNorm of several workers does, whatever the workers are: threads of this process or ranks.
// Every worker calls these functions, all with the same number of devices.
#pragma once

#include <cohort/cluster/bootstrap.h>

namespace cohort::testing {

/// Uneven and empty parts: outputs, moving statistics and gradients are those of one replica that has all
/// rows.
void check_batch_norm_of_all_rows(Bootstrap& worker, int devices);

/// With reproducible communication the same to the last bit, in every dtype, for rows that are hard to sum.
void check_bits_of_batch_norm(Bootstrap& worker, int devices);

/// Normalizations that replicas make in different orders are named.
void check_batch_norms_that_differ(Bootstrap& worker, int devices);

}  // namespace cohort::testing
