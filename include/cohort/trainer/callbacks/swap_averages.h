// SwapAverages evaluates a training by the moving averages of its parameters, which the optimizer's option
// `average` keeps (update_options.h), and leaves these in the parameters when the training ends. In between
// the parameters themselves are trained.
#pragma once

#include <cohort/trainer/callback.h>

namespace cohort {

class SwapAverages final : public Callback {
 public:
  /// @throws InvalidArgument for a training whose optimizer keeps no averages.
  void on_train_begin(const Logs& logs) override;
  void on_train_end(const Logs& logs) override;
  void on_test_begin(const Logs& logs) override;
  void on_test_end(const Logs& logs) override;

 private:
  void swap();
};

}  // namespace cohort
