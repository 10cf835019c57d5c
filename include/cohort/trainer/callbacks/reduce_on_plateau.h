// ReduceOnPlateau multiplies the learning rate by a factor when the training gets no better. The logs of each
// epoch have the rate that it was trained at, as `learning_rate`. What it knows, and the rate, are in the
// checkpoints of `fit`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <cohort/trainer/callbacks/monitor.h>

namespace cohort {

struct ReduceOnPlateauOptions {
  std::string monitor = "val_loss";
  MonitorMode mode = MonitorMode::kAuto;
  double factor = 0.1;        ///< from 0 on, below 1
  int patience = 10;          ///< reduces after so many epochs without a better one; 0 as 1
  double min_delta = 0.0001;  ///< less of a change is no change
  int cooldown = 0;           ///< epochs after a reduction that do not count
  double min_rate = 0;        ///< never below
};

class ReduceOnPlateau final : public Callback {
 public:
  /// @throws InvalidArgument for a factor that reduces nothing, and negative numbers.
  explicit ReduceOnPlateau(ReduceOnPlateauOptions options = {});

  /// @throws InvalidArgument for a training without an optimizer.
  void on_train_begin(const Logs& logs) override;
  void on_epoch_begin(int epoch, const Logs& logs) override;
  void on_epoch_end(int epoch, Logs& logs) override;
  void add_state(Checkpoint& checkpoint, const std::string& prefix) override;

  /// Epochs since the latest better one, or reduction.
  [[nodiscard]] int wait() const noexcept { return wait_; }
  /// Epochs that do not count yet.
  [[nodiscard]] int cooldown() const noexcept { return cooldown_; }

 private:
  void reduce();

  ReduceOnPlateauOptions options_;
  Monitor monitor_;
  std::int32_t wait_ = 0;
  std::int32_t cooldown_ = 0;
  bool has_best_ = false;
  double best_ = 0;
  double rate_ = -1;          ///< that it has set; negative before
  bool is_restored_ = false;  ///< the rate has been set again, where a checkpoint had one
};

}  // namespace cohort
