// ModelCheckpoint saves the parameters while they are trained, to be used elsewhere: after each epoch, or
// only those that are better than all before. To go on with a training after a restart is another thing,
// which FitOptions::checkpoint does.
//
//     ModelCheckpoint best("models", {.monitor = "val_accuracy", .save_best_only = true, .max_to_keep = 1});
//
// A folder is that of a CheckpointManager. A checkpoint has the parameters by their names, its step is that
// of the training, and its metrics are the epoch's logs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <cohort/trainer/callbacks/monitor.h>

namespace cohort {

namespace detail {
class SavedParameters;
}

struct ModelCheckpointOptions {
  std::string monitor = "val_loss";
  MonitorMode mode = MonitorMode::kAuto;
  bool save_best_only = false;
  /// Saves at steps that are multiples of it, in place of at the ends of epochs; 0: at the ends of epochs.
  std::int64_t save_every_steps = 0;
  int max_to_keep = 5;  ///< of the newest, beside the best by `monitor`; 0: all
};

class ModelCheckpoint final : public Callback {
 public:
  /// All models in the folder count for `max_to_keep`, those of an earlier training too, by their steps; so
  /// give each training a folder of its own.
  /// @throws InvalidArgument for negative numbers, and for `save_best_only` with `save_every_steps`.
  explicit ModelCheckpoint(std::string folder, ModelCheckpointOptions options = {});
  ~ModelCheckpoint() override;

  /// @throws as CheckpointManager; InvalidArgument for a training without parameters.
  void on_train_begin(const Logs& logs) override;
  void on_train_batch_end(std::int64_t batch, const Logs& logs) override;
  void on_epoch_end(int epoch, Logs& logs) override;
  /// Lets the folder go.
  void on_train_end(const Logs& logs) override;
  void add_state(Checkpoint& checkpoint, const std::string& prefix) override;

  [[nodiscard]] std::optional<double> best() const noexcept {
    return has_best_ ? std::optional(best_) : std::nullopt;
  }

 private:
  std::string folder_;
  ModelCheckpointOptions options_;
  Monitor monitor_;
  bool has_best_ = false;
  double best_ = 0;
  std::unique_ptr<detail::SavedParameters> saved_;  ///< during a training
};

}  // namespace cohort
