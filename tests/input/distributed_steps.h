// What workers and their replicas get of a distributed dataset, as numbers.
#pragma once

#include <functional>
#include <vector>

#include <cohort/input/distribute.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../strategy/fake_cluster.h"
#include "batches.h"

namespace cohort::testing {

/// For each step, the rows that each replica of a worker got.
using PartSteps = std::vector<Steps>;

[[nodiscard]] inline Steps rows_by_replica(const PerReplica<Tensor>& batches) {
  Steps rows;
  for (const Tensor& part : batches.components()) rows.push_back(elements_of(part));
  return rows;
}

/// One pass.
[[nodiscard]] inline PartSteps parts_of(const DistributedDataset<Tensor>& dataset) {
  PartSteps steps;
  for (const PerReplica<Tensor>& batches : dataset) steps.push_back(rows_by_replica(batches));
  return steps;
}

[[nodiscard]] inline Strategy worker_strategy(Bootstrap& worker, int devices) {
  return MultiWorkerMirroredStrategy(worker, {.timeout_seconds = 60}, cpu_devices(devices));
}

using Distribution = std::function<DistributedDataset<Tensor>(const Strategy& strategy, int worker)>;

/// One pass of each worker, by rank; workers are threads.
[[nodiscard]] inline std::vector<PartSteps> parts_by_worker(int workers, int devices,
                                                            const Distribution& distribution) {
  std::vector<PartSteps> by_worker(static_cast<std::size_t>(workers));
  for_each_worker(workers, [&](Bootstrap& worker) {
    const Strategy strategy = worker_strategy(worker, devices);
    by_worker[static_cast<std::size_t>(worker.rank())] = parts_of(distribution(strategy, worker.rank()));
  });
  return by_worker;
}

}  // namespace cohort::testing
