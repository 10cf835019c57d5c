// EarlyStopping ends a training that gets no better:
//
//     EarlyStopping early({.monitor = "val_loss", .patience = 3, .restore_best_weights = true});
//     trainer.fit(train, {.epochs = 100, .validation_data = test, .callbacks = {early}});
//
// What it knows is in the checkpoints of `fit`, so a restart changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <cohort/trainer/callbacks/monitor.h>

namespace cohort {

struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  MonitorMode mode = MonitorMode::kAuto;
  double min_delta = 0;  ///< less of a change is no change
  int patience = 0;      ///< ends after so many epochs without a better one; 0 as 1
  /// Epochs count as without a better one until one is better than this.
  std::optional<double> baseline = {};
  int start_from_epoch = 0;  ///< epochs before are not looked at
  /// Gives the parameters the values of the best epoch when the training ends: after the last of its epochs,
  /// and where any callback stops it. Takes memory for one copy.
  bool restore_best_weights = false;
};

class EarlyStopping final : public Callback {
 public:
  /// @throws InvalidArgument for a negative number of epochs or `min_delta`.
  explicit EarlyStopping(EarlyStoppingOptions options = {});

  void on_train_begin(const Logs& logs) override;
  void on_epoch_end(int epoch, Logs& logs) override;
  void on_train_end(const Logs& logs) override;
  void add_state(Checkpoint& checkpoint, const std::string& prefix) override;

  /// Epochs since the latest better one.
  [[nodiscard]] int wait() const noexcept { return wait_; }
  [[nodiscard]] std::optional<double> best() const noexcept {
    return has_best_ ? std::optional(best_) : std::nullopt;
  }
  [[nodiscard]] int best_epoch() const noexcept { return best_epoch_; }
  /// The epoch after which it ended the training; nothing if it did not.
  [[nodiscard]] std::optional<int> stopped_epoch() const noexcept { return stopped_epoch_; }

 private:
  void look(int epoch, double value);
  void note_better(int epoch, double value);
  void restore_best();

  EarlyStoppingOptions options_;
  Monitor monitor_;
  std::int32_t wait_ = 0;
  bool has_best_ = false;
  double best_ = 0;
  std::int32_t best_epoch_ = 0;
  std::optional<int> stopped_epoch_;
  std::vector<Tensor> best_weights_;  ///< of the parameters, in their order
};

}  // namespace cohort
