// train_and_evaluate for batches of any kind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <cohort/checkpoint/termination_config.h>
#include <cohort/trainer/callback.h>
#include <cohort/trainer/exporter.h>

namespace cohort {

enum class TrainingTask {
  kTrainAndEvaluate,  ///< both, in turn: evaluates a checkpoint before it trains on
  kTrain,             ///< an evaluator evaluates
  kEvaluate,          ///< evaluates what others train
};

struct TrainAndEvaluateOptions {
  std::string folder = {};  ///< of checkpoints, which all tasks see
  TrainingTask task = TrainingTask::kTrainAndEvaluate;
  std::int64_t save_every_steps = 1000;
  int max_to_keep = 5;  ///< checkpoints; 0: all
  /// How long an evaluator waits for the next checkpoint, or for the training to end; 0: for ever.
  double timeout_seconds = 7200;
  TerminationConfig termination = {};
};

/// What came out for the parameters after so many steps.
struct Evaluation {
  std::int64_t step = 0;
  Logs logs = {};
};

namespace detail {

struct TrainAndEvaluateProgram {
  Training& training;
  std::function<void(std::int64_t steps)> fit;  ///< goes on from the newest checkpoint to so many steps
  std::function<Logs()> evaluate;
};

struct TrainAndEvaluatePlan {
  const TrainAndEvaluateOptions& options;
  std::int64_t max_steps = 0;
  double start_delay_seconds = 0;
  double throttle_seconds = 0;
  const std::vector<Exporter>& exporters;
};

std::vector<Evaluation> train_and_evaluate(const TrainAndEvaluateProgram& program,
                                           const TrainAndEvaluatePlan& plan);

}  // namespace detail

}  // namespace cohort
