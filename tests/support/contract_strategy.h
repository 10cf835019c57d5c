// The strategy whose contracts workers check together.
#pragma once

#include <cohort/cluster/bootstrap.h>
#include <cohort/device/device.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

namespace cohort::testing {

inline MultiWorkerMirroredStrategy strategy_of(Bootstrap& worker, int devices) {
  return MultiWorkerMirroredStrategy(worker, {.timeout_seconds = 60}, cpu_devices(devices));
}

}  // namespace cohort::testing
