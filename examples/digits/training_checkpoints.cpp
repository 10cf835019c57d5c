#include "training_checkpoints.h"

#include <fmt/format.h>

#include <cohort/base/log.h>
#include <cohort/checkpoint/checkpoint_folder.h>

namespace digits {

using cohort::Variable;

TrainingCheckpoints::TrainingCheckpoints(const Options& options, const cohort::Strategy& strategy,
                                         const Mlp& model, cohort::Optimizer& optimizer,
                                         cohort::DatasetPosition& position, Score& score) {
  if (options.checkpoint.empty()) return;
  if (!options.resume && !cohort::list_checkpoints(options.checkpoint).empty())
    throw UsageError(
        fmt::format("--checkpoint {}: there are checkpoints; add --resume to go on from the newest "
                    "one, or name another folder",
                    options.checkpoint));
  checkpoint_.emplace(strategy);
  const auto parameters = model.parameters();
  for (const Variable& parameter : parameters) checkpoint_->add(parameter.name(), parameter);
  checkpoint_->add("sgd", optimizer, parameters);
  checkpoint_->add("position", position);
  checkpoint_->add("score", score);
  manager_.emplace(*checkpoint_, options.checkpoint,
                   cohort::CheckpointManagerOptions{.save_every_steps = options.every,
                                                    .memory_every = options.memory_every});
  handler_.emplace(*manager_);
  if (const auto& status = handler_->restored().status) status->assert_consumed();
}

void TrainingCheckpoints::before_step() {
  if (handler_) handler_->save_checkpoint_if_preempted();
}

void TrainingCheckpoints::after_step() {
  if (!handler_) return;
  const std::int64_t step = handler_->total_run_calls();
  cohort::logging::debug("step {} has ended", step);
  manager_->snapshot_if_due(step);
  manager_->save_if_due(step);
}

void TrainingCheckpoints::finish() {
  if (handler_) handler_->finish();
}

}  // namespace digits
