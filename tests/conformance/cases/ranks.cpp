// The replicas are ranks.
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "mpi_main.h"
#include "replicas.h"

namespace cohort::testing {

std::vector<int> replica_counts() { return {0}; }

Strategy make_strategy(int /*replicas*/) {
  return MultiWorkerMirroredStrategy(session(), {.timeout_seconds = 20});
}

}  // namespace cohort::testing
