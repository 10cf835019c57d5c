// The steps of a training: the step functions of a Model, how they run over a distributed dataset, and the
// loss and the metrics that they add up.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/input/cardinality.h>
#include <cohort/input/distributed_dataset.h>
#include <cohort/input/pass.h>
#include <cohort/train/losses/loss_reduction.h>
#include <cohort/train/metrics/metric.h>
#include <cohort/train/metrics/metric_set.h>
#include <cohort/trainer/logs.h>
#include <cohort/trainer/model.h>
#include <cohort/trainer/step_functions.h>
#include <cohort/trainer/step_outcome.h>

namespace cohort::detail {

/// Which metrics a Trainer has, and what its loss is.
struct MetricPlan {
  std::vector<Metric> metrics = {};
  std::vector<Metric> weighted_metrics = {};
  std::vector<MetricHandle> step_metrics = {};
  LossReduction reduction = LossReduction::kSumOverBatchSize;
};

/// The loss and the metrics since an epoch began: each replica adds up its own examples, and one collective
/// adds up those of all replicas when somebody asks.
class EpochMetrics {
 public:
  /// @throws InvalidArgument for metrics of one name, and those that are not one number.
  EpochMetrics(const Strategy& strategy, const MetricPlan& plan);

  /// In a replica. @throws InvalidArgument for losses that are not those of examples.
  void add(const StepOutcome& outcome);

  void reset() const { set_.reset_state(); }

  /// Sets the results over all replicas of all workers. Collective.
  void set_logs(Logs& logs);

  [[nodiscard]] std::span<const MetricHandle> handles() const noexcept { return set_.metrics(); }

 private:
  MetricPlan plan_;
  MetricHandle loss_;
  MetricSet set_;
};

/// How many examples the losses count for in the mean of the batch: their number, or the sum of their
/// weights. Of a sum there is no mean: each step counts once, over all replicas.
[[nodiscard]] double examples_of(const StepOutcome& outcome, LossReduction reduction);

// The step functions of a Model.

/// What a model's steps depend on beside the model.
struct ModelSettings {
  LossReduction reduction = LossReduction::kSumOverBatchSize;
  std::map<std::int64_t, double> class_weight = {};  ///< of the fit that runs
};

/// Applies gradients of the sum of losses: divided by the examples of the whole batch, unless the reduction
/// says otherwise; no examples, no update.
void apply_sum(Optimizer& optimizer, const std::vector<GradientAndVariable>& gradients,
               const StepOutcome& outcome, LossReduction reduction);

/// @throws InvalidArgument for a weight that is negative or not finite, naming its class.
void require_usable(const std::map<std::int64_t, double>& class_weight);

/// The weights of examples of these classes. @throws InvalidArgument for labels that are not one class for
/// each example, and where the examples have weights already.
[[nodiscard]] Tensor weights_by_class(const std::map<std::int64_t, double>& class_weight,
                                      const StepOutcome& outcome);

/// What the losses of examples are multiplied with in gradients: their weights, and the optimizer's loss
/// scale, by which it divides the gradients again.
[[nodiscard]] std::optional<Tensor> scaled_weights(const StepOutcome& outcome, const Optimizer& optimizer);

/// @throws InvalidArgument for losses that are not one of each example.
void require_losses_of_rows(const StepOutcome& outcome);

template <class Batch, class M, class Forward>
[[nodiscard]] decltype(auto) gradients_of(M& model, const Batch& batch, const Forward& forward,
                                          const std::optional<Tensor>& weights) {
  if constexpr (TakesWeights<M, Batch>) {
    return model.gradients(batch, forward, weights);
  } else {
    if (weights)
      throw InvalidArgument(
          "the losses of this step have weights, of the batch, of class_weight or of a loss scale, but the "
          "model's gradients() takes none; give it a third parameter, const std::optional<Tensor>& weights");
    return model.gradients(batch, forward);
  }
}

template <class Batch, class M>
[[nodiscard]] decltype(auto) inferred(M& model, const Batch& batch) {
  if constexpr (requires { model.infer(batch); })
    return model.infer(batch);
  else
    return model.forward(batch);
}

template <class Batch, class M, class Forward>
[[nodiscard]] StepOutcome outcome_of(M& model, const Batch& batch, const Forward& forward) {
  StepOutcome outcome(model.loss(batch, forward), weights_of(batch));
  outcome.labels = labels_of(batch);
  outcome.predictions = predictions_of(forward);
  require_losses_of_rows(outcome);
  return outcome;
}

/// The model, the optimizer and the settings outlive the functions.
template <class Batch, class M>
[[nodiscard]] StepFunctions<Batch> model_steps(M& model, Optimizer& optimizer,
                                               const ModelSettings& settings) {
  const auto& parameters = model.parameters();
  return {.train = [&model, &optimizer, &settings](const Batch& mine) -> StepOutcome {
            const auto& forward = model.forward(mine);
            StepOutcome outcome = outcome_of(model, mine, forward);
            if (!settings.class_weight.empty())
              outcome.weights = weights_by_class(settings.class_weight, outcome);
            const auto& gradients = gradients_of(model, mine, forward, scaled_weights(outcome, optimizer));
            apply_sum(optimizer, gradients, outcome, settings.reduction);
            return outcome;
          },
          .test = [&model](const Batch& mine) { return outcome_of(model, mine, inferred(model, mine)); },
          .predict = [&model](const Batch& mine) -> Tensor { return predictions_of(inferred(model, mine)); },
          .parameters = std::vector<Variable>(std::ranges::begin(parameters), std::ranges::end(parameters)),
          .optimizer = &optimizer};
}

enum class StepKind { kTrain, kTest };

/// The steps of a distributed dataset, whatever its elements are, as the loop of a training sees them.
class AnyBatches {
 public:
  AnyBatches() = default;
  virtual ~AnyBatches() = default;
  AnyBatches(const AnyBatches&) = delete;
  AnyBatches& operator=(const AnyBatches&) = delete;

  /// As far as it is known without reading.
  [[nodiscard]] virtual Cardinality cardinality() const = 0;

  /// Begins a pass there. Collective, as all of the following.
  virtual void begin_at(const DatasetPosition& position) = 0;

  /// Where a pass would go on with the following step.
  [[nodiscard]] virtual DatasetPosition position() const = 0;

  /// Fetches the batches of the following step; false at the end of the pass.
  [[nodiscard]] virtual bool next() = 0;

  /// Runs the replicas' step with these batches, and adds its outcomes to the metrics.
  virtual void run(StepKind kind, EpochMetrics& metrics) = 0;

  /// Appends the predictions for these batches, in the order of the step's rows.
  virtual void predict(std::vector<Tensor>& predictions) = 0;
};

/// The same of one kind of batch.
template <class Batch>
class DistributedBatches final : public AnyBatches {
 public:
  /// The step functions outlive it.
  DistributedBatches(DistributedDataset<Batch> dataset, Strategy strategy, const StepFunctions<Batch>& steps)
      : dataset_(std::move(dataset)), strategy_(std::move(strategy)), steps_(steps) {}

  [[nodiscard]] Cardinality cardinality() const override { return dataset_.cardinality(); }
  void begin_at(const DatasetPosition& position) override {
    batches_.reset();
    pass_.reset();  // its thread reads ahead no more
    pass_.emplace(dataset_.iterate_at(position));
  }
  [[nodiscard]] DatasetPosition position() const override { return pass_->position(); }
  [[nodiscard]] bool next() override {
    batches_ = pass_->get_next_as_optional();
    return batches_.has_value();
  }

  void run(StepKind kind, EpochMetrics& metrics) override {
    const auto& step = kind == StepKind::kTrain ? steps_.train : steps_.test;
    require(static_cast<bool>(step), kind == StepKind::kTrain ? "train" : "test");
    strategy_.run([&](ReplicaContext& replica, const Batch& mine) { metrics.add(step(replica, mine)); },
                  *batches_);
  }

  void predict(std::vector<Tensor>& predictions) override {
    require(static_cast<bool>(steps_.predict), "predict");
    const auto own = strategy_.run(
        [&](ReplicaContext& replica, const Batch& mine) { return steps_.predict(replica, mine); }, *batches_);
    // The parts of a batch go to the workers in turn, one round for each of their replicas.
    for (const Tensor& part : own.components()) predictions.push_back(strategy_.gather(part, 0));
  }

 private:
  static void require(bool is_there, const char* function) {
    if (!is_there)
      throw InvalidArgument("the Trainer was made from StepFunctions without `{}`, which this call needs",
                            function);
  }

  DistributedDataset<Batch> dataset_;
  Strategy strategy_;
  const StepFunctions<Batch>& steps_;
  std::optional<DistributedIterator<Batch>> pass_;
  std::optional<PerReplica<Batch>> batches_;
};

}  // namespace cohort::detail
