// SwapAverages evaluates a training by the moving averages of its parameters, which the optimizer's option
// `average` keeps (update_options.h), and leaves these in the parameters when the training ends. In between
// the parameters themselves are trained: what ModelCheckpoint saves and EarlyStopping restores are those.
// In `evaluate` it takes the averages where the training has not left them in the parameters.
#pragma once

#include <cohort/trainer/callback.h>

namespace cohort {

class SwapAverages final : public Callback {
 public:
  /// @throws InvalidArgument for a training whose optimizer keeps no averages; all hooks of a test before the
  /// first step, for there are none yet.
  void on_train_begin(const Logs& logs) override;
  void on_train_end(const Logs& logs) override;
  void on_test_begin(const Logs& logs) override;
  void on_test_end(const Logs& logs) override;

 private:
  void swap();

  bool has_ended_ = false;  ///< the training, so that the parameters are the averages
};

}  // namespace cohort
