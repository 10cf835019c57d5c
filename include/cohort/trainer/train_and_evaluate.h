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
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/cluster_spec.h>
#include <cohort/trainer/detail/train_and_evaluate.h>
#include <cohort/trainer/exporter.h>
#include <cohort/trainer/trainer.h>

namespace cohort {

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
