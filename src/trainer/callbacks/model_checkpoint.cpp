#include <cohort/trainer/callbacks/model_checkpoint.h>

#include <filesystem>
#include <utility>

#include <cohort/checkpoint/checkpoint_folder.h>

namespace cohort {

ModelCheckpoint::ModelCheckpoint(std::string folder, ModelCheckpointOptions options)
    : folder_(std::move(folder)), options_(std::move(options)), monitor_(options_.monitor, options_.mode) {
  if (options_.save_every_steps < 0 || options_.max_to_keep < 0)
    throw InvalidArgument("ModelCheckpoint: save_every_steps {} and max_to_keep {} must not be negative",
                          options_.save_every_steps, options_.max_to_keep);
  if (options_.save_best_only && options_.save_every_steps > 0)
    throw InvalidArgument(
        "ModelCheckpoint: save_best_only looks at whole epochs; leave save_every_steps at 0");
}

ModelCheckpoint::~ModelCheckpoint() = default;

void ModelCheckpoint::on_train_begin(const Logs& /*logs*/) {
  if (training().parameters().empty())
    throw InvalidArgument(
        "ModelCheckpoint: this training names no parameters; set StepFunctions::parameters");
  if (options_.save_best_only) monitor_.begin(training(), "ModelCheckpoint");
  has_best_ = false;
  best_ = 0;
  manager_.reset();
  checkpoint_ = std::make_unique<Checkpoint>(training().strategy());
  for (const Variable& parameter : training().parameters()) checkpoint_->add(parameter.name(), parameter);
  manager_ = std::make_unique<CheckpointManager>(
      *checkpoint_, folder_,
      CheckpointManagerOptions{.max_to_keep = options_.max_to_keep,
                               .best_metric = options_.monitor,
                               .lower_is_better = !monitor_.more_is_better()});
}

void ModelCheckpoint::on_train_batch_end(std::int64_t /*batch*/, const Logs& logs) {
  if (options_.save_every_steps > 0 && training().step() % options_.save_every_steps == 0) save(logs);
}

void ModelCheckpoint::on_epoch_end(int /*epoch*/, Logs& logs) {
  if (options_.save_every_steps > 0) return;
  if (!options_.save_best_only) return save(logs);
  const std::optional<double> value = monitor_.read(logs, training());
  if (!value || *value != *value || (has_best_ && !monitor_.is_better(*value, best_))) return;
  has_best_ = true;
  best_ = *value;
  save(logs);
}

/// A restart may come to a step again that was saved before; then it is saved anew.
void ModelCheckpoint::save(const Logs& logs) {
  const std::int64_t step = training().step();
  if (training().strategy().extended().should_checkpoint())
    for (const FoundCheckpoint& found : list_checkpoints(folder_))
      if (found.step == step) std::filesystem::remove_all(found.path);
  CheckpointMetrics metrics;
  for (const auto& [name, value] : logs) metrics[name] = value;
  manager_->save(step, metrics);
}

void ModelCheckpoint::on_train_end(const Logs& /*logs*/) {
  manager_.reset();
  checkpoint_.reset();
}

void ModelCheckpoint::add_state(Checkpoint& checkpoint, const std::string& prefix) {
  const std::string name = prefix + "/model_checkpoint/" + monitor_.name();
  checkpoint.add(name + "/has_best", has_best_);
  checkpoint.add(name + "/best", best_);
}

}  // namespace cohort
