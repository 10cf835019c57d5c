// The replicas are devices of this process, the workers its threads.
#include <cohort/strategy/mirrored_strategy.h>

#include "../../strategy/fake_cluster.h"
#include "replicas.h"

namespace cohort::testing {

std::vector<int> devices_per_process() { return {1, 2, 3, 4}; }

Strategy make_strategy(int devices) {
  return MirroredStrategy(cpu_devices(devices), {.timeout_seconds = 60});
}

void meet() {}

void as_workers(int workers, const std::function<void(Bootstrap&)>& function) {
  for_each_worker(workers, function);
}

}  // namespace cohort::testing
