#include "training_checkpoints.h"

#include <filesystem>
#include <map>
#include <typeindex>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/log.h>
#include <cohort/checkpoint/checkpoint_folder.h>

#include "train/metrics/metric_state.h"

namespace cohort::detail {
namespace {

Checkpoint& with_parameters(Checkpoint& checkpoint, const Training& training) {
  if (training.parameters().empty())
    throw InvalidArgument("there are no parameters to save in this training; set StepFunctions::parameters");
  for (const Variable& parameter : training.parameters()) checkpoint.add(parameter.name(), parameter);
  return checkpoint;
}

}  // namespace

SavedParameters::SavedParameters(const Training& training, std::string folder,
                                 const CheckpointManagerOptions& options)
    : removes_(training.strategy().extended().should_checkpoint()),
      folder_(std::move(folder)),
      checkpoint_(training.strategy()),
      manager_(with_parameters(checkpoint_, training), folder_, options) {}

void SavedParameters::save(std::int64_t step, const Logs& logs) {
  if (removes_)
    for (const FoundCheckpoint& found : list_checkpoints(folder_))
      if (found.step == step) std::filesystem::remove_all(found.path);
  CheckpointMetrics metrics;
  for (const auto& [name, value] : logs) metrics[name] = value;
  manager_.save(step, metrics);
}

namespace {

/// What is in the checkpoints.
void add_training(Checkpoint& checkpoint, const Training& training, const CallbackList& callbacks,
                  FitPosition& position, std::span<const MetricHandle> metrics) {
  for (const Variable& parameter : training.parameters()) checkpoint.add(parameter.name(), parameter);
  if (Optimizer* optimizer = training.optimizer(); optimizer != nullptr && !training.parameters().empty())
    checkpoint.add("optimizer", *optimizer, training.parameters());
  checkpoint.add("fit/epoch", position.epoch);
  checkpoint.add("fit/batch", position.batch);
  checkpoint.add("fit/step", position.step);
  checkpoint.add("fit/dataset", position.dataset);
  checkpoint.add("fit/epoch_steps", position.epoch_steps);
  checkpoint.add("fit/stopped", position.stopped);
  checkpoint.add("fit/history", position.history);
  for (const MetricHandle& metric : metrics)
    checkpoint.add("fit/metrics/" + metric.name(), ReplicaNumbers{[state = metric.state()](int local) {
                     return state->replica(static_cast<std::size_t>(local));
                   }});
  std::map<std::type_index, int> of_kind;
  for (Callback& callback : callbacks) {
    const int number = ++of_kind[typeid(callback)];
    const std::string prefix = number == 1 ? "fit/callbacks" : fmt::format("fit/callbacks/{}", number);
    training.strategy().extended().or_abort_workers([&] { callback.add_state(checkpoint, prefix); });
  }
}

/// What is added up of a step is in no checkpoint.
void require_whole_steps(const FitPlan& plan, const Optimizer* optimizer) {
  const std::int64_t calls = optimizer == nullptr ? 1 : optimizer->update_options().accumulation_steps;
  const auto require = [calls](std::string_view option, std::int64_t steps, std::string_view when) {
    if (steps % calls == 0) return;
    throw InvalidArgument(
        "fit: the optimizer adds up the gradients of {} steps, and a checkpoint is saved after {} {}; "
        "gradients that are added up are in no checkpoint, so make {} a multiple of {}",
        calls, when, steps, option, calls);
  };
  require("checkpoint.manager.save_every_steps", plan.checkpoint.manager.save_every_steps, "every");
  require("checkpoint.manager.memory_every", plan.checkpoint.manager.memory_every, "every");
  require("max_steps", plan.max_steps.value_or(0), "step");
}

const std::string& usable_folder(const FitCheckpoint& plan) {
  if (!plan.resume && !list_checkpoints(plan.folder).empty())
    throw InvalidArgument(
        "fit: there are checkpoints in '{}'; set resume, to go on from the newest one, or name another "
        "folder",
        plan.folder);
  return plan.folder;
}

}  // namespace

TrainingCheckpoints::TrainingCheckpoints(const FitPlan& plan, const Training& training,
                                         const CallbackList& callbacks, FitPosition& position,
                                         std::span<const MetricHandle> metrics)
    : optimizer_(training.optimizer()),
      checkpoint_(training.strategy()),
      manager_((require_whole_steps(plan, training.optimizer()),
                add_training(checkpoint_, training, callbacks, position, metrics), checkpoint_),
               usable_folder(plan.checkpoint), plan.checkpoint.manager),
      handler_(manager_, plan.checkpoint.termination) {
  if (const auto& status = handler_.restored().status) {
    status->assert_consumed();
  } else if (is_mid_step()) {
    throw InvalidArgument(
        "fit: the optimizer has added up the gradients of {} calls for a step of {}, which are in no "
        "checkpoint; end that step before a fit with checkpoints",
        optimizer_->accumulated_calls(), optimizer_->update_options().accumulation_steps);
  }
}

void TrainingCheckpoints::after_step() {
  const std::int64_t step = handler_.total_run_calls();
  logging::debug("step {} has ended", step);
  if (is_mid_step()) return;
  manager_.snapshot_if_due(step);
  manager_.save_if_due(step);
}

void TrainingCheckpoints::save_last() {
  if (manager_.latest_step() != handler_.total_run_calls()) manager_.save(handler_.total_run_calls());
}

}  // namespace cohort::detail
