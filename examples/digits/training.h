// The training, the same for one replica and for many, under any strategy.
#pragma once

#include <functional>

#include <cohort/input/input_context.h>
#include <cohort/strategy/strategy.h>

#include "mlp.h"
#include "options.h"
#include "report.h"

namespace digits {

struct TrainingPlan {
  bool reports = true;  ///< whether this process shows progress
  /// Which part of the images this process trains on, where the strategy does not divide them.
  cohort::InputContext share = {};
  std::function<void()> after_step = [] {};
  /// With the number of the epoch. Called at least once, with the last epoch's.
  std::function<void(const Mlp&, int)> after_epoch = [](const Mlp&, int) {};
};

/// @throws UsageError when there are checkpoints, but no --resume; cohort::Preempted.
[[nodiscard]] Results train(const Options& options, const cohort::Strategy& strategy,
                            const TrainingPlan& plan);

/// On the test images.
[[nodiscard]] double test_accuracy(const Options& options, const cohort::Strategy& strategy, const Mlp& model,
                                   const Digits& digits);

}  // namespace digits
