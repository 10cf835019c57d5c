// How batches reach the replicas: how many pipelines make them, where they are put, and how far ahead of the
// program they are made.
#pragma once

#include <string_view>

#include <cohort/input/auto_shard.h>

namespace cohort {

enum class InputReplicationMode {
  kPerWorker,   ///< one pipeline, from which the worker's replicas take turns
  kPerReplica,  ///< each replica has a pipeline of its own; for functions that make datasets, on one worker
};

/// `per_worker` or `per_replica`.
[[nodiscard]] std::string_view to_string(InputReplicationMode mode) noexcept;

struct InputOptions {
  /// Each replica's batches are copied to its device; otherwise they stay where the pipeline put them.
  bool fetch_to_device = true;

  InputReplicationMode replication_mode = InputReplicationMode::kPerWorker;

  /// The function that makes a replica's dataset is called with the replica's device as the current one (see
  /// DeviceScope), and its batches stay there. Needs kPerReplica, and no fetching.
  bool place_dataset_on_device = false;

  /// How many batches per replica are ready for the program while the pipeline makes one more. A thread of
  /// the iterator's works ahead as long as that is faster; see Dataset::prefetch. 0: nothing is made ahead.
  int per_replica_buffer_size = 1;

  /// @throws InvalidArgument for a negative buffer, and for a placement on devices that contradicts the rest.
  void validate() const;
};

struct DistributeOptions {
  AutoShardPolicy auto_shard_policy = AutoShardPolicy::kAuto;
  InputOptions input = {};
};

}  // namespace cohort
