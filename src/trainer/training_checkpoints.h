// The checkpoints of a fit: what is in them, and when they are made.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/checkpoint/checkpoint_manager.h>
#include <cohort/checkpoint/preemption_checkpoint_handler.h>
#include <cohort/train/metrics/metric.h>
#include <cohort/trainer/callback.h>
#include <cohort/trainer/detail/fit_position.h>
#include <cohort/trainer/detail/training_loop.h>

namespace cohort::detail {

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
