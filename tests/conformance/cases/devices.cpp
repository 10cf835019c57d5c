// The replicas are devices of this process.
#include <cohort/strategy/mirrored_strategy.h>

#include "replicas.h"

namespace cohort::testing {

std::vector<int> replica_counts() { return {1, 2, 3, 4}; }

Strategy make_strategy(int replicas) {
  return MirroredStrategy(cpu_devices(replicas), {.timeout_seconds = 60});
}

}  // namespace cohort::testing
