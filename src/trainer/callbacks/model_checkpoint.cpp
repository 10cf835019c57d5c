#include <cohort/trainer/callbacks/model_checkpoint.h>

#include <cmath>
#include <utility>

#include "trainer/save_parameters.h"

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
  if (options_.save_best_only) monitor_.begin(training(), "ModelCheckpoint");
  has_best_ = false;
  best_ = 0;
  saved_.reset();
  saved_ = std::make_unique<detail::SavedParameters>(
      training(), folder_,
      CheckpointManagerOptions{.max_to_keep = options_.max_to_keep,
                               .best_metric = options_.monitor,
                               .lower_is_better = !monitor_.more_is_better()});
}

void ModelCheckpoint::on_train_batch_end(std::int64_t /*batch*/, const Logs& logs) {
  if (options_.save_every_steps > 0 && training().step() % options_.save_every_steps == 0)
    saved_->save(training().step(), logs);
}

void ModelCheckpoint::on_epoch_end(int /*epoch*/, Logs& logs) {
  if (options_.save_every_steps > 0) return;
  if (!options_.save_best_only) return saved_->save(training().step(), logs);
  const std::optional<double> value = monitor_.read(logs, training());
  if (!value || std::isnan(*value) || (has_best_ && !monitor_.is_better(*value, best_))) return;
  has_best_ = true;
  best_ = *value;
  saved_->save(training().step(), logs);
}

void ModelCheckpoint::on_train_end(const Logs& /*logs*/) { saved_.reset(); }

void ModelCheckpoint::add_state(Checkpoint& checkpoint, const std::string& prefix) {
  const std::string name = prefix + "/model_checkpoint/" + monitor_.name();
  checkpoint.add(name + "/has_best", has_best_);
  checkpoint.add(name + "/best", best_);
}

}  // namespace cohort
