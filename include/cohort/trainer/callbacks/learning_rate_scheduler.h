// LearningRateScheduler sets the learning rate at the beginning of each epoch, and adds it to the epoch's
// logs as `learning_rate`. A rate that changes from step to step is the optimizer's own: see
// LearningRateSchedule.
#pragma once

#include <functional>
#include <string>

#include <cohort/trainer/callback.h>

namespace cohort {

class LearningRateScheduler final : public Callback {
 public:
  /// Of an epoch, from 0, and the rate of the one before: the same on every worker.
  using Function = std::function<double(int epoch, double rate)>;

  /// @throws InvalidArgument for an empty function.
  explicit LearningRateScheduler(Function schedule);

  /// @throws InvalidArgument for a training without an optimizer.
  void on_train_begin(const Logs& logs) override;
  /// @throws InvalidArgument for a rate that is negative or not finite.
  void on_epoch_begin(int epoch, const Logs& logs) override;
  void on_epoch_end(int epoch, Logs& logs) override;
  void add_state(Checkpoint& checkpoint, const std::string& prefix) override;

 private:
  Function schedule_;
  std::int32_t epoch_ = -1;  ///< that the rate was set for
  double rate_ = 0;
};

}  // namespace cohort
