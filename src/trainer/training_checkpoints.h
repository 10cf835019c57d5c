// The checkpoints of a training: those of a fit, from which it goes on, and those of its parameters alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/checkpoint_manager.h>
#include <cohort/checkpoint/preemption_checkpoint_handler.h>
#include <cohort/train/metrics/metric.h>
#include <cohort/trainer/callback.h>
#include <cohort/trainer/detail/training_loop.h>

namespace cohort::detail {

/// Saves the parameters of a training, and nothing else.
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

/// Of a fit: what is in them, and when they are made.
class TrainingCheckpoints {
 public:
  /// Restores the newest checkpoint, where there is one, to the training and `position`, which outlives it.
  /// @throws InvalidArgument for a folder with checkpoints where `resume` is false, for steps to save that
  /// are none of the optimizer's, and what restoring throws.
  TrainingCheckpoints(const FitPlan& plan, const Training& training, const CallbackList& callbacks,
                      FitPosition& position, std::span<const MetricHandle> metrics);

  [[nodiscard]] bool restored() const { return handler_.restored().step.has_value(); }

  /// Makes a step between saving what is due. @throws Preempted where the job is about to be ended, but not
  /// while gradients are added up.
  template <class Step>
  void around(Step step) {
    if (is_mid_step())
      handler_.run_unchecked(step);
    else
      handler_.run(step);
  }
  void after_step();

  /// Saves the step that was made last, unless it is saved already.
  void save_last();

  /// After the last step. @throws Preempted.
  void finish() { handler_.finish(); }

 private:
  /// Whether gradients are added up, which a checkpoint would lose.
  [[nodiscard]] bool is_mid_step() const {
    return optimizer_ != nullptr && optimizer_->accumulated_calls() > 0;
  }

  const Optimizer* optimizer_;
  Checkpoint checkpoint_;
  CheckpointManager manager_;
  PreemptionCheckpointHandler handler_;
};

}  // namespace cohort::detail
