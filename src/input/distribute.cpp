#include <cohort/input/distribute.h>

namespace cohort::detail {

WorkerPlace place_of(const StrategyExtended& extended) {
  return {.worker = extended.first_replica_id() / extended.local_replicas(),
          .workers = extended.workers(),
          .replicas_per_worker = extended.local_replicas()};
}

void require_usable(const InputOptions& options, bool splits, const StrategyExtended& extended) {
  options.validate();
  if (options.replication_mode == InputReplicationMode::kPerWorker) return;
  if (splits) {
    throw Unimplemented(
        "InputReplicationMode::kPerReplica is for distribute_datasets_from_function: "
        "a dataset that is split has one pipeline per worker");
  }
  if (extended.workers() > 1) {
    throw Unimplemented(
        "InputReplicationMode::kPerReplica with {} workers: "
        "a pipeline per replica is for one worker with several devices",
        extended.workers());
  }
}

}  // namespace cohort::detail
