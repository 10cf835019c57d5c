// The training loop, the same for one replica and for many, under any strategy.
#pragma once

#include <functional>

#include <cohort/input/dataset.h>
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

[[nodiscard]] Results train(const Options& options, const cohort::Strategy& strategy,
                            const TrainingPlan& plan);

[[nodiscard]] double test_accuracy(const cohort::Strategy& strategy, const Mlp& model,
                                   const cohort::Dataset<Batch>& test_batches);

void add(Score& total, const Score& part);

}  // namespace digits
