// How batches are split among workers and their replicas, and which options can be had.
#include <cohort/input/distribute.h>

#include <algorithm>
#include <cstddef>
#include <mutex>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/input/auto_shard.h>
#include <cohort/input/input_context.h>
#include <cohort/input/input_options.h>
#include <cohort/input/split.h>

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

void warn_of_shared_reading(const WorkerPlace& place) {
  if (place.worker != 0) return;
  static std::once_flag warned;
  std::call_once(warned, [&] {
    logging::warning(
        "no file list to shard among {} workers: each worker reads the whole dataset and keeps its share of "
        "every batch. To choose this explicitly, pass {{.auto_shard_policy = AutoShardPolicy::kData}}",
        place.workers);
  });
}

}  // namespace cohort::detail

namespace cohort {

std::string_view to_string(InputReplicationMode mode) noexcept {
  return mode == InputReplicationMode::kPerReplica ? "per_replica" : "per_worker";
}

void InputOptions::validate() const {
  if (per_replica_buffer_size < 0) {
    throw InvalidArgument("per_replica_buffer_size is {}; it must be at least 0, which prepares none ahead",
                          per_replica_buffer_size);
  }
  if (!place_dataset_on_device) return;
  if (replication_mode != InputReplicationMode::kPerReplica) {
    throw InvalidArgument(
        "place_dataset_on_device needs InputReplicationMode::kPerReplica: "
        "one pipeline cannot be on several devices");
  }
  if (fetch_to_device) {
    throw InvalidArgument(
        "place_dataset_on_device and fetch_to_device exclude each other: "
        "what is already on its device is not fetched there");
  }
}

std::int64_t InputContext::per_replica_batch_size(std::int64_t global) const {
  if (global % num_replicas_in_sync != 0) {
    throw InvalidArgument(
        "a global batch of {} elements does not divide among {} replicas; use a multiple of {}, or "
        "distribute_dataset, which splits any batch",
        global, num_replicas_in_sync, num_replicas_in_sync);
  }
  return global / num_replicas_in_sync;
}

RowRange part_of(std::int64_t rows, int replica, int replicas) {
  const std::int64_t shortest = rows / replicas;
  const std::int64_t longer = rows % replicas;
  const std::int64_t begin = replica * shortest + std::min<std::int64_t>(replica, longer);
  return {begin, begin + shortest + (replica < longer ? 1 : 0)};
}

std::vector<std::int64_t> rebatch_sizes(std::int64_t global_batch, const WorkerPlace& place) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(static_cast<std::size_t>(place.replicas()));
  for (int replica = 0; replica < place.replicas(); ++replica) {
    const RowRange part = part_of(global_batch, replica, place.replicas());
    sizes.push_back(part.end - part.begin);
  }
  std::rotate(sizes.begin(), sizes.begin() + std::ptrdiff_t{place.worker} * place.replicas_per_worker,
              sizes.end());
  return sizes;
}

}  // namespace cohort
