// A CheckpointManager keeps the checkpoints of a job in one folder: it removes old ones, finds the newest
// that is sound, and keeps other jobs from writing there as long as it lives.
//
//     CheckpointManager manager(checkpoint, "checkpoints", {.max_to_keep = 3});
//     const std::int64_t begin = manager.restore_latest().step.value_or(0);
//     for (std::int64_t step = begin + 1; step <= steps; ++step) {
//       train(step);
//       if (step % 100 == 0) manager.save(step);
//     }
//
// All workers of the checkpoint's strategy make the same calls, as for Checkpoint. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cohort/checkpoint/checkpoint.h>

namespace cohort {

struct CheckpointManagerOptions {
  /// How many of the newest checkpoints stay; 0: all.
  int max_to_keep = 5;
};

/// A checkpoint that could not be used.
struct SkippedCheckpoint {
  std::string path = {};
  std::string reason = {};
};

struct LatestCheckpoint {
  std::optional<std::int64_t> step = {};        ///< nothing when there was no sound checkpoint
  std::optional<RestoreStatus> status = {};     ///< of that step
  std::vector<SkippedCheckpoint> skipped = {};  ///< newer ones, the newest first; the first worker knows them
};

class CheckpointManager {
 public:
  /// The checkpoint outlives the manager. The folder is made if it is not there.
  /// @throws InvalidArgument for a negative `max_to_keep`; Unavailable when the folder cannot be written to,
  /// or another job writes there.
  CheckpointManager(Checkpoint& checkpoint, std::string folder, const CheckpointManagerOptions& options = {});
  ~CheckpointManager();
  CheckpointManager(const CheckpointManager&) = delete;
  CheckpointManager& operator=(const CheckpointManager&) = delete;

  /// As Checkpoint::save; then removes the oldest checkpoints beyond `max_to_keep`, never this one. What
  /// cannot be removed is logged.
  std::string save(std::int64_t step);

  /// Restores the newest checkpoint of which every byte is as it was written. Newer ones are damaged: they
  /// are logged, and renamed to `step-N.damaged`, so that their steps can be saved again and they count no
  /// more.
  /// @throws as Checkpoint::restore, and Unavailable for a newer one that cannot be read now.
  LatestCheckpoint restore_latest();

  /// The step that was saved or restored last.
  [[nodiscard]] std::optional<std::int64_t> latest_step() const noexcept { return latest_step_; }

  [[nodiscard]] Checkpoint& checkpoint() const noexcept { return checkpoint_; }

 private:
  Checkpoint& checkpoint_;
  std::string folder_;
  CheckpointManagerOptions options_;
  std::unique_ptr<checkpoint::WriterLock> lock_;  ///< the first worker's; null on the others
  std::optional<std::int64_t> latest_step_;
};

}  // namespace cohort
