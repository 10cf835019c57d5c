// The replicas are devices of ranks, which are the workers.
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "mpi_main.h"
#include "replicas.h"

namespace cohort::testing {

std::vector<int> devices_per_process() { return {1, 2}; }

Strategy make_strategy(int devices) {
  return MultiWorkerMirroredStrategy(session(), {.timeout_seconds = 20}, cpu_devices(devices));
}

void meet() { static_cast<void>(session().exchange("")); }

void as_workers(int workers, const std::function<void(Bootstrap&)>& function) {
  if (session().size() != workers) GTEST_SKIP() << "for " << workers << " ranks";
  function(session());
}

}  // namespace cohort::testing
