// Saves the parameters of a training, and nothing else.
#pragma once

#include <string>

#include <cohort/checkpoint/checkpoint_manager.h>
#include <cohort/trainer/callback.h>

namespace cohort::detail {

class SavedParameters {
 public:
  /// @throws InvalidArgument for a training without parameters; as CheckpointManager.
  SavedParameters(const Training& training, std::string folder, const CheckpointManagerOptions& options);

  /// A restart may come to a step again that was saved before; then it is saved anew. Collective.
  void save(std::int64_t step, const Logs& logs);

 private:
  bool removes_;  ///< this process does
  std::string folder_;
  Checkpoint checkpoint_;
  CheckpointManager manager_;
};

}  // namespace cohort::detail
