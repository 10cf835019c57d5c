#include <cohort/input/input_context.h>

#include <cohort/base/error.h>

namespace cohort {

std::int64_t InputContext::per_replica_batch_size(std::int64_t global) const {
  if (global % num_replicas_in_sync != 0) {
    throw InvalidArgument(
        "a global batch of {} elements does not divide among {} replicas; use a multiple of {}, or "
        "distribute_dataset, which splits any batch",
        global, num_replicas_in_sync, num_replicas_in_sync);
  }
  return global / num_replicas_in_sync;
}

}  // namespace cohort
