// An InputContext says for which replicas a function makes a dataset: the argument of the function given to
// `Strategy::distribute_datasets_from_function`. An input pipeline feeds the replicas of one worker, or a
// single replica; see InputReplicationMode.
#pragma once

#include <cstdint>
#include <ostream>

namespace cohort {

struct InputContext {
  int num_input_pipelines = 1;
  int input_pipeline_id = 0;
  int num_replicas_in_sync = 1;

  /// How many of the `global` elements of a step one replica gets.
  /// @throws InvalidArgument when the replicas cannot get equally many.
  [[nodiscard]] std::int64_t per_replica_batch_size(std::int64_t global) const;

  /// For example `InputContext(input pipeline id 1, total: 2)`.
  friend std::ostream& operator<<(std::ostream& stream, const InputContext& context) {
    return stream << "InputContext(input pipeline id " << context.input_pipeline_id
                  << ", total: " << context.num_input_pipelines << ")";
  }
};

}  // namespace cohort
