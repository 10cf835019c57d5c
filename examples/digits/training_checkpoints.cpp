#include "training_checkpoints.h"

#include <fmt/format.h>

#include <cohort/checkpoint/checkpoint_folder.h>

namespace digits {

using cohort::Variable;

TrainingCheckpoints::TrainingCheckpoints(const Options& options, const cohort::Strategy& strategy,
                                         const Mlp& model, cohort::Optimizer& optimizer,
                                         cohort::DatasetPosition& position, Score& score)
    : every_(options.every) {
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
  manager_.emplace(*checkpoint_, options.checkpoint);
  if (!options.resume) return;
  const cohort::LatestCheckpoint latest = manager_->restore_latest();
  if (latest.status) latest.status->assert_consumed();
  step_ = latest.step.value_or(0);
}

void TrainingCheckpoints::after_step() {
  if (manager_ && ++step_ % every_ == 0) manager_->save(step_);
}

}  // namespace digits
