// Checkpoints of a training, if the command line asks for them.
#pragma once

#include <cstdint>
#include <optional>

#include <cohort/checkpoint/checkpoint_manager.h>
#include <cohort/input/pass.h>
#include <cohort/strategy/strategy.h>
#include <cohort/train/optimizer.h>

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

  /// Saves a checkpoint if one is due.
  void after_step();

 private:
  std::optional<cohort::Checkpoint> checkpoint_;  ///< of the parameters that this process has
  std::optional<cohort::CheckpointManager> manager_;
  std::int64_t every_;
  std::int64_t step_ = 0;
};

}  // namespace digits
