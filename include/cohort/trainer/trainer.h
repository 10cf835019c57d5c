// A Trainer trains a Model, evaluates it and predicts by it, on datasets and under any strategy:
//
//     MirroredStrategy strategy(cpu_devices(2));
//     auto scope = strategy.scope();
//     Linear model;
//     Sgd optimizer({.learning_rate = 0.1});
//     Trainer trainer(strategy, model, optimizer);
//     const History history = trainer.fit(train.batch(64), {.epochs = 5, .validation_data = test.batch(64)});
//     const Logs score = trainer.evaluate(test.batch(64));
//
// It does nothing that a program could not write itself: it distributes the dataset, calls a replica's step
// by `run` for each batch, and reduces losses once in an epoch. Programs that write the step themselves pass
// StepFunctions in place of a model.
//
// A batch is divided among all replicas, and each example counts alike, however uneven the parts are: the
// gradient is the mean over the examples of the whole batch, and the loss of an epoch is the mean over all of
// its examples.
//
// All workers call the same functions of a Trainer with the same arguments, in cross-replica context; an
// error of one worker is an error on all of them, which names it. The model and the optimizer outlive the
// Trainer. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/distribute.h>
#include <cohort/trainer/detail/training_loop.h>
#include <cohort/trainer/detail/training_steps.h>
#include <cohort/trainer/fit_options.h>
#include <cohort/trainer/history.h>
#include <cohort/trainer/model.h>
#include <cohort/trainer/step_functions.h>

namespace cohort {

struct TrainerOptions {
  /// Of labels and predictions, each of one number: what a model predicts, and what steps return of both.
  std::vector<Metric> metrics = {};
  /// The same with the weights of the examples.
  std::vector<Metric> weighted_metrics = {};
  /// Any that step functions update themselves.
  std::vector<MetricHandle> step_metrics = {};
  /// What the losses of a batch amount to. In the history, the loss of an epoch is the mean over its
  /// examples, or weights, and of a sum the mean over its steps.
  LossReduction reduction = LossReduction::kSumOverBatchSize;
  /// How datasets are divided among the workers.
  DistributeOptions distribute = {};
};

template <class Batch>
class Trainer {
 public:
  template <ModelOf<Batch> M>
  Trainer(const Strategy& strategy, M& model, Optimizer& optimizer, TrainerOptions options = {})
      : options_(std::move(options)),
        settings_(std::make_unique<detail::ModelSettings>(detail::ModelSettings{options_.reduction})),
        steps_(detail::model_steps<Batch>(model, optimizer, *settings_)),
        loop_(strategy, steps_.parameters, steps_.optimizer, metric_plan()) {}

  Trainer(const Strategy& strategy, StepFunctions<Batch> steps, TrainerOptions options = {})
      : options_(std::move(options)),
        steps_(std::move(steps)),
        loop_(strategy, steps_.parameters, steps_.optimizer, metric_plan()) {}

  /// Trains, epoch by epoch, and returns the loss and the metrics of each. Callbacks are called in the order
  /// of Keras. Where the dataset has a shuffle, epochs have different orders.
  /// @throws InvalidArgument for options that cannot be, an empty dataset, and one without an end unless
  /// `steps_per_epoch` is set; WrongContext inside a replica, and where another strategy is active; what
  /// steps, datasets and callbacks throw, of which the other workers get an error that names this one.
  History fit(const TrainingData<Batch>& data, const FitOptions<Batch>& options = {}) {
    loop_.require_idle("fit");
    auto batches = distributed(data, options_.distribute);
    std::optional<detail::DistributedBatches<Batch>> validation;
    if (options.validation_data)
      validation.emplace(options.validation_data->distributed(loop_.strategy(), options_.distribute),
                         loop_.strategy(), steps_);
    set_class_weight(options.class_weight);
    return loop_.fit(batches, {.epochs = options.epochs,
                               .initial_epoch = options.initial_epoch,
                               .steps_per_epoch = options.steps_per_epoch,
                               .max_steps = options.max_steps,
                               .validation = validation ? &*validation : nullptr,
                               .validation_steps = options.validation_steps,
                               .validation_freq = options.validation_freq,
                               .validation_epochs = options.validation_epochs,
                               .callbacks = options.callbacks,
                               .checkpoint = options.checkpoint});
  }

  /// The loss and the metrics over the dataset. @throws as fit.
  Logs evaluate(const TrainingData<Batch>& data, const EvaluateOptions& options = {}) {
    auto batches = distributed(data, options_.distribute);
    return loop_.evaluate(batches, options);
  }

  /// The predictions for all examples, [examples, ...], in the order of the dataset, on every worker. A
  /// dataset that the program has distributed by files has the order in which its workers read them.
  /// @throws as fit.
  [[nodiscard]] Tensor predict(const TrainingData<Batch>& data, const PredictOptions& options = {}) {
    DistributeOptions in_order = options_.distribute;
    in_order.auto_shard_policy = AutoShardPolicy::kData;
    auto batches = distributed(data, in_order);
    return loop_.predict(batches, options);
  }

  /// What callbacks see of this Trainer.
  [[nodiscard]] Training& training() noexcept { return loop_; }

 private:
  [[nodiscard]] detail::DistributedBatches<Batch> distributed(const TrainingData<Batch>& data,
                                                              const DistributeOptions& options) {
    return {data.distributed(loop_.strategy(), options), loop_.strategy(), steps_};
  }

  [[nodiscard]] detail::MetricPlan metric_plan() const {
    return {options_.metrics, options_.weighted_metrics, options_.step_metrics, options_.reduction};
  }
  void set_class_weight(const std::map<std::int64_t, double>& class_weight) {
    detail::require_usable(class_weight);
    if (settings_ != nullptr)
      settings_->class_weight = class_weight;
    else if (!class_weight.empty())
      throw InvalidArgument(
          "fit: class_weight needs a model; step functions weigh their examples themselves");
  }

  TrainerOptions options_;
  std::unique_ptr<detail::ModelSettings> settings_;  ///< null without a model
  StepFunctions<Batch> steps_;
  detail::TrainingLoop loop_;
};

template <class M>
Trainer(const Strategy&, M&, Optimizer&) -> Trainer<typename M::Batch>;
template <class M>
Trainer(const Strategy&, M&, Optimizer&, const TrainerOptions&) -> Trainer<typename M::Batch>;

}  // namespace cohort
