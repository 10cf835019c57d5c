// train_and_evaluate trains up to a number of steps, saves checkpoints on the way, and evaluates them:
// between two stretches of training, or, where the cluster has an evaluator, in that task of its own, which
// takes each checkpoint as it appears, while the others train on.
//
//     RoleClusterResolver roles(session, "chief=1,worker=2,evaluator=1");
//     ...                                              // a strategy of the role, a model, and its Trainer
//     train_and_evaluate(trainer, {.data = train, .max_steps = 10000}, {.data = test},
//                        {.folder = "checkpoints",
//                         .task = training_task(roles.cluster_spec(), *roles.task_type())});
//
// Every task runs the same program and sees the folder. A training that has been ended goes on from its
// newest checkpoint when the program is started again, and one that has had its steps does nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/checkpoint/termination_config.h>
#include <cohort/cluster/cluster_spec.h>
#include <cohort/trainer/callback.h>
#include <cohort/trainer/exporter.h>
#include <cohort/trainer/trainer.h>

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

/// The part of a task: `evaluator` evaluates; `chief` and `worker` train, and evaluate together as well where
/// the cluster has no evaluator.
/// @throws InvalidArgument for `ps`, and clusters that cannot be (see cluster_roles.h).
[[nodiscard]] TrainingTask training_task(const ClusterSpec& spec, std::string_view task_type);

template <class Batch>
struct TrainSpec {
  TrainingData<Batch> data;
  std::int64_t max_steps = 0;      ///< of the whole training, restarts included
  std::optional<int> epochs = {};  ///< passes over the data at most; unset: as many as the steps need
  CallbackList callbacks = {};
};

template <class Batch>
struct EvalSpec {
  TrainingData<Batch> data;
  std::optional<std::int64_t> steps = 100;  ///< of it at most; unset: all
  std::vector<Exporter> exporters = {};
  CallbackList callbacks = {};
  double start_delay_seconds = 120;  ///< before the first evaluation of an evaluator
  double throttle_seconds = 600;     ///< between the beginnings of two evaluations; the last one never waits
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

/// Trains and evaluates by `trainer`, as the options say. Returns the evaluations that this task has made,
/// which are equal on all workers that train together.
/// @throws InvalidArgument for options that cannot be; DeadlineExceeded where an evaluator sees no new
/// checkpoint for too long; what Trainer::fit and evaluate throw, Preempted among it.
template <class Batch>
std::vector<Evaluation> train_and_evaluate(Trainer<Batch>& trainer, const TrainSpec<Batch>& train,
                                           const EvalSpec<Batch>& eval,
                                           const TrainAndEvaluateOptions& options) {
  const auto fit = [&](std::int64_t steps) {
    trainer.fit(train.data, {.epochs = train.epochs.value_or(std::numeric_limits<int>::max()),
                             .max_steps = steps,
                             .callbacks = train.callbacks,
                             .checkpoint = {.folder = options.folder,
                                            .manager = {.max_to_keep = options.max_to_keep,
                                                        .save_every_steps = options.save_every_steps},
                                            .termination = options.termination}});
  };
  const auto evaluate = [&] {
    return trainer.evaluate(eval.data, {.steps = eval.steps, .callbacks = eval.callbacks});
  };
  return detail::train_and_evaluate(
      {trainer.training(), fit, evaluate},
      {options, train.max_steps, eval.start_delay_seconds, eval.throttle_seconds, eval.exporters});
}

}  // namespace cohort
