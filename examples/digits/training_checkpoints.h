// Checkpoints of a training, if the command line asks for them. A training that has them saves one more when
// its job is about to be ended, and leaves.
#pragma once

#include <optional>

#include <cohort/checkpoint/preemption_checkpoint_handler.h>
#include <cohort/input/pass.h>
#include <cohort/strategy/strategy.h>
#include <cohort/train/optimizers/optimizer.h>

#include "mlp.h"
#include "options.h"

namespace digits {

class TrainingCheckpoints {
 public:
  /// What the checkpoints have: the model, its optimizer, the position in the images, and the score of the
  /// epoch so far. With --resume, the newest checkpoint is restored.
  /// @throws UsageError when there are checkpoints, but no --resume.
  TrainingCheckpoints(const Options& options, const cohort::Strategy& strategy, const Mlp& model,
                      cohort::Optimizer& optimizer, cohort::DatasetPosition& position, Score& score);

  /// To be called around each step: saves a checkpoint if one is due, or the job is about to be ended.
  /// @throws cohort::Preempted in the latter case.
  void before_step();
  void after_step();

  /// After the last step. @throws as before_step.
  void finish();

 private:
  std::optional<cohort::Checkpoint> checkpoint_;  ///< of the parameters that this process has
  std::optional<cohort::CheckpointManager> manager_;
  std::optional<cohort::PreemptionCheckpointHandler> handler_;
};

}  // namespace digits
