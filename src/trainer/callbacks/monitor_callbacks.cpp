// Callbacks that look at a number of the logs: to stop, to save, or to end a training that has failed.
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include <cohort/base/log.h>
#include <cohort/trainer/callbacks/early_stopping.h>
#include <cohort/trainer/callbacks/model_checkpoint.h>
#include <cohort/trainer/callbacks/monitor.h>
#include <cohort/trainer/callbacks/terminate_on_nan.h>

#include "trainer/training_checkpoints.h"

namespace cohort {
namespace {

bool has_any(std::string_view name, auto words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

bool more_is_better_by_name(std::string_view name) {
  using namespace std::string_view_literals;
  return has_any(name, std::array{"acc"sv, "auc"sv, "precision"sv, "recall"sv, "sensitivity"sv,
                                  "specificity"sv, "iou"sv, "f1"sv, "fbeta"sv, "f_score"sv, "r2"sv,
                                  "cosine_similarity"sv, "true_positives"sv, "true_negatives"sv});
}

bool less_is_better_by_name(std::string_view name) {
  using namespace std::string_view_literals;
  return has_any(name,
                 std::array{"loss"sv, "error"sv, "mae"sv, "mse"sv, "mape"sv, "msle"sv, "entropy"sv, "hinge"sv,
                            "divergence"sv, "poisson"sv, "cosh"sv, "false_positives"sv, "false_negatives"sv});
}

}  // namespace

Monitor::Monitor(std::string name, MonitorMode mode)
    : name_(std::move(name)),
      more_is_better_(
          mode == MonitorMode::kMax ||
          (mode == MonitorMode::kAuto && more_is_better_by_name(name_) && !less_is_better_by_name(name_))),
      is_guessed_(mode == MonitorMode::kAuto && !more_is_better_ && !less_is_better_by_name(name_)) {
  if (name_.empty()) throw InvalidArgument("a callback monitors nothing: name a number of the logs");
}

void Monitor::begin(const Training& training, const char* callback) {
  has_warned_ = false;
  if (is_guessed_ && training.reports())
    logging::warning(
        "{}: whether more or less of '{}' is better does not follow from its name; it takes less "
        "for better. Set mode to say so",
        callback, name_);
}

std::optional<double> Monitor::read(const Logs& logs, const Training& training) {
  if (const double* value = logs.find(name_)) return *value;
  const auto is_of_validation = [](std::string_view name) { return name.starts_with("val_"); };
  std::vector<std::string_view> names;
  for (const auto& [name, value] : logs) names.push_back(name);
  const bool has_validated = std::ranges::any_of(names, is_of_validation);
  const bool waits = is_of_validation(name_) && training.params().validates && !has_validated;
  if (waits || std::exchange(has_warned_, true) || !training.reports()) return std::nullopt;
  logging::warning(
      "a callback monitors '{}', which is not in the logs of this epoch; name one of these: {}{}", name_,
      fmt::join(names, ", "),
      is_of_validation(name_) && !has_validated ? "; names with val_ need validation_data" : "");
  return std::nullopt;
}

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

void TerminateOnNaN::on_train_batch_end(std::int64_t /*batch*/, const Logs& logs) {
  if (looks_ == Looks::kEachBatch) look(logs);
}

void TerminateOnNaN::on_epoch_end(int /*epoch*/, Logs& logs) { look(logs); }

void TerminateOnNaN::look(const Logs& logs) {
  const double* loss = logs.find("loss");
  if (loss == nullptr || std::isfinite(*loss) || training().stopped()) return;
  if (training().reports())
    logging::error("TerminateOnNaN: the loss is {} after step {}; the training ends", *loss,
                   training().step());
  training().stop();
}

}  // namespace cohort
