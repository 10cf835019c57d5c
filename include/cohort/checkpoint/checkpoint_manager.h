// A CheckpointManager keeps the checkpoints of a job in one folder: it removes old ones, finds the newest
// that is sound, and keeps other jobs from writing there as long as it lives.
//
//     CheckpointManager manager(checkpoint, "checkpoints", {.max_to_keep = 3, .save_every_steps = 100});
//     const std::int64_t begin = manager.restore_latest().step.value_or(0);
//     for (std::int64_t step = begin + 1; step <= steps; ++step) {
//       train(step);
//       manager.save_if_due(step);
//     }
//
// All workers of the checkpoint's strategy make the same calls, as for Checkpoint. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/checkpoint_folder.h>

namespace cohort {

namespace checkpoint {
class MemorySnapshots;
class StepVote;
}  // namespace checkpoint

/// What a checkpoint is judged by, such as the accuracy and the loss of its step.
using CheckpointMetrics = std::map<std::string, double>;

/// All workers pass the same.
struct CheckpointManagerOptions {
  /// How many of the newest checkpoints stay; 0: all.
  int max_to_keep = 5;

  /// Checkpoints whose step is a multiple of it stay, too; 0: none.
  std::int64_t keep_every_steps = 0;

  /// The best by this metric stays, too, the earlier of equal ones; empty: no metric counts.
  std::string best_metric = {};
  bool lower_is_better = false;

  /// When save_if_due() saves: at steps that are multiples of it, and so long after the latest save. 0: never
  /// for that reason.
  std::int64_t save_every_steps = 0;
  double save_every_seconds = 0;

  /// snapshot_if_due() takes a snapshot at steps that are multiples of it; 0: never.
  std::int64_t memory_every = 0;
};

/// A checkpoint that could not be used.
struct SkippedCheckpoint {
  std::string path = {};
  std::string reason = {};
};

struct LatestCheckpoint {
  std::optional<std::int64_t> step = {};        ///< nothing when there was no sound checkpoint
  bool was_in_memory = false;                   ///< it was a snapshot
  std::optional<RestoreStatus> status = {};     ///< of that step
  std::vector<SkippedCheckpoint> skipped = {};  ///< newer ones, the newest first; the first worker knows them
};

class CheckpointManager {
 public:
  /// The checkpoint outlives the manager. The folder is made if it is not there.
  /// @throws InvalidArgument for a negative `max_to_keep`; Unavailable when the folder cannot be written to,
  /// or another job writes there.
  CheckpointManager(Checkpoint& checkpoint, std::string folder, const CheckpointManagerOptions& options = {});
  /// Waits for a save that is under way, as ~Checkpoint.
  ~CheckpointManager();
  CheckpointManager(const CheckpointManager&) = delete;
  CheckpointManager& operator=(const CheckpointManager&) = delete;

  /// As Checkpoint::save; then removes the oldest checkpoints that no option keeps, never this one. What
  /// cannot be removed is logged. The first worker's metrics are stored with the checkpoint; a number that is
  /// infinite or not a number is left out, with a warning.
  std::string save(std::int64_t step, const CheckpointMetrics& metrics = {});

  /// Whether the options say that it is time to save; to be asked once after each step. Time is that of the
  /// first worker's clock; the others learn it one call later, while the step runs, so all save then.
  [[nodiscard]] bool is_due(std::int64_t step);

  /// Saves if it is time to, and returns the path.
  std::optional<std::string> save_if_due(std::int64_t step, const CheckpointMetrics& metrics = {}) {
    if (!is_due(step)) return std::nullopt;
    return save(step, metrics);
  }

  /// The checkpoint that is the best by `best_metric`; nothing if none has it.
  /// @throws WrongContext without such an option.
  [[nodiscard]] std::optional<FoundCheckpoint> best();

  /// As Checkpoint::save_async. Because the new one is not complete yet, one more stays until the next save.
  std::string save_async(std::int64_t step, const CheckpointMetrics& metrics = {});

  /// Writes a snapshot of the values to the shared memory of every host if `memory_every` says so, and
  /// returns whether it does. Snapshots outlive the workers, but not the job: `cohort-run --restarts` keeps
  /// the place for them, and without it none is taken. There are at most two on a host. A host whose memory
  /// is full logs a warning and keeps an older one.
  bool snapshot_if_due(std::int64_t step);

  /// Restores the newest snapshot in the memory of any host, or the newest checkpoint on disk, if that is
  /// newer or there is no snapshot. Of disk, the newest checkpoint of which every byte is as it was written.
  /// Newer ones are damaged: they are logged, and renamed to `step-N.damaged`, so that their steps can be
  /// saved again and they count no more.
  /// @throws as Checkpoint::restore, and Unavailable for a newer one that cannot be read now.
  LatestCheckpoint restore_latest();

  /// The step that was saved or restored last.
  [[nodiscard]] std::optional<std::int64_t> latest_step() const noexcept { return latest_step_; }

  [[nodiscard]] Checkpoint& checkpoint() const noexcept { return checkpoint_; }

 private:
  friend class PreemptionCheckpointHandler;

  /// Waits for what the workers tell each other while a step runs, after a step that all have made.
  void settle() noexcept;
  void remove_old(std::int64_t newest, int max_to_keep);
  void note_save(std::int64_t step, const CheckpointMetrics& stored);
  [[nodiscard]] std::optional<std::int64_t> best_of(const std::vector<FoundCheckpoint>& found);

  Checkpoint& checkpoint_;
  std::string folder_;
  CheckpointManagerOptions options_;
  std::unique_ptr<checkpoint::WriterLock> lock_;         ///< the first worker's; null on the others
  std::unique_ptr<checkpoint::MemorySnapshots> memory_;  ///< null when none are taken
  std::unique_ptr<checkpoint::StepVote> clock_;          ///< null unless seconds count
  std::chrono::steady_clock::time_point latest_save_ = std::chrono::steady_clock::now();
  std::optional<std::int64_t> latest_step_;                     ///< on disk
  std::map<std::int64_t, std::optional<double>> best_metrics_;  ///< by step, as far as they are known
};

}  // namespace cohort
