#include <cohort/trainer/callbacks/early_stopping.h>

#include <cmath>
#include <utility>

#include <cohort/base/log.h>

namespace cohort {

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(std::move(options)), monitor_(options_.monitor, options_.mode) {
  if (options_.patience < 0 || options_.start_from_epoch < 0 || !(options_.min_delta >= 0))
    throw InvalidArgument(
        "EarlyStopping: patience {}, start_from_epoch {} and min_delta {} must not be negative",
        options_.patience, options_.start_from_epoch, options_.min_delta);
}

void EarlyStopping::on_train_begin(const Logs& /*logs*/) {
  monitor_.begin(training(), "EarlyStopping");
  wait_ = 0;
  has_best_ = false;
  best_ = 0;
  best_epoch_ = 0;
  stopped_epoch_.reset();
  best_weights_.clear();
  if (!options_.restore_best_weights) return;
  for (const Variable& parameter : training().parameters()) best_weights_.push_back(parameter.read().clone());
}

void EarlyStopping::on_epoch_end(int epoch, Logs& logs) {
  if (epoch < options_.start_from_epoch) return;
  const std::optional<double> value = monitor_.read(logs, training());
  if (value) look(epoch, *value);
  if (stopped_epoch_ || epoch + 1 == training().params().epochs) restore_best();
}

/// What another callback has ended, too; but not a fit that max_steps ends, after which the training goes on.
void EarlyStopping::on_train_end(const Logs& /*logs*/) {
  if (training().stopped()) restore_best();
}

void EarlyStopping::look(int epoch, double value) {
  ++wait_;
  const bool is_first = !has_best_ && !std::isnan(value);
  if (is_first || (has_best_ && monitor_.is_better(value, best_, options_.min_delta)))
    return note_better(epoch, value);
  if (wait_ < options_.patience || epoch == 0) return;
  stopped_epoch_ = epoch;
  training().stop();
  if (training().reports())
    logging::info("EarlyStopping: {} was best in epoch {}; the training ends after epoch {}", monitor_.name(),
                  best_epoch_, epoch);
}

void EarlyStopping::note_better(int epoch, double value) {
  has_best_ = true;
  best_ = value;
  best_epoch_ = epoch;
  for (std::size_t i = 0; i < best_weights_.size(); ++i)
    best_weights_[i].copy_from(training().parameters()[i].read());
  if (!options_.baseline || monitor_.is_better(value, *options_.baseline, options_.min_delta)) wait_ = 0;
}

void EarlyStopping::restore_best() {
  if (!has_best_) return;
  for (std::size_t i = 0; i < best_weights_.size(); ++i) training().parameters()[i].assign(best_weights_[i]);
}

void EarlyStopping::add_state(Checkpoint& checkpoint, const std::string& prefix) {
  const std::string name = prefix + "/early_stopping/" + monitor_.name();
  checkpoint.add(name + "/wait", wait_);
  checkpoint.add(name + "/has_best", has_best_);
  checkpoint.add(name + "/best", best_);
  checkpoint.add(name + "/best_epoch", best_epoch_);
  for (std::size_t i = 0; i < best_weights_.size(); ++i)
    checkpoint.add(name + "/weights/" + training().parameters()[i].name(), best_weights_[i]);
}

}  // namespace cohort
