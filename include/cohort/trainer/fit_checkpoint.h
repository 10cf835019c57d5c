// Checkpoints of a fit, from which it goes on as if nothing had happened: the same bits, the same examples in
// the same order, and the same history.
#pragma once

#include <string>

#include <cohort/checkpoint/checkpoint_manager.h>
#include <cohort/checkpoint/termination_config.h>

namespace cohort {

/// A checkpoint has the parameters, by their names, the state of the optimizer, the position in the dataset
/// and in the epoch, the sums of losses and metrics, the history, and what callbacks add. All workers see
/// the folder. Where the job is about to be ended, one more is saved, and `fit` throws Preempted.
struct FitCheckpoint {
  std::string folder = {};  ///< empty: no checkpoints

  /// When checkpoints and snapshots in memory are made, and which stay. They are numbered by steps.
  CheckpointManagerOptions manager = {.save_every_steps = 100};

  /// Goes on from the newest checkpoint, if there is one; otherwise a folder with checkpoints is refused.
  bool resume = true;

  TerminationConfig termination = {};
};

}  // namespace cohort
