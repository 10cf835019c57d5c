#include <cohort/trainer/detail/training_steps.h>

#include <cmath>

#include <cohort/strategy/replica_context.h>

#include "train/metrics/metric_state.h"

namespace cohort::detail {
namespace {

template <class T>
double weighted_sum(const Tensor& losses, const std::optional<Tensor>& weights) {
  const std::span<const T> values = losses.span<T>();
  double sum = 0;
  if (!weights) {
    for (const T value : values) sum += static_cast<double>(value);
    return sum;
  }
  const Tensor wide = weights->dtype() == losses.dtype() ? *weights : weights->cast(losses.dtype());
  const std::span<const T> factors = wide.span<T>();
  for (std::size_t i = 0; i < values.size(); ++i)
    sum += static_cast<double>(values[i]) * static_cast<double>(factors[i]);
  return sum;
}

double sum_on_host(const Tensor& losses, const std::optional<Tensor>& weights) {
  if (losses.dtype() == DType::kFloat32) return weighted_sum<float>(losses, weights);
  return weighted_sum<double>(losses.dtype() == DType::kFloat64 ? losses : losses.cast(DType::kFloat64),
                              weights);
}

void require_losses_of_examples(const Tensor& losses, const std::optional<Tensor>& weights) {
  if (losses.shape().rank() != 1 || !is_floating(losses.dtype()))
    throw InvalidArgument(
        "a step of the Trainer returned losses {}; it returns one floating loss for each example, [rows], or "
        "a "
        "LossSum",
        describe(losses));
  if (weights && weights->elements() != losses.elements())
    throw InvalidArgument("a step of the Trainer has {} losses, but weights {}; each example has one",
                          losses.elements(), describe(*weights));
}

/// sum(losses) / examples; what it sums up is added by EpochMetrics itself.
class MeanLoss final : public MetricRule {
 public:
  [[nodiscard]] std::size_t sums() const override { return 2; }
  void update(const MetricBatch& /*batch*/, std::span<double> /*sums*/) const override {}
  void compute(std::span<const double> sums, std::span<double> result) const override {
    result[0] = sums[1] == 0 ? 0 : sums[0] / sums[1];
  }
};

/// Makes the handle of a rule.
class LossHandle : public MetricHandle {
 public:
  LossHandle() : MetricHandle("loss", std::make_shared<const MeanLoss>()) {}
};

/// The loss first, as in the logs.
std::vector<MetricHandle> all_of(const Strategy& strategy, const MetricHandle& loss, const MetricPlan& plan) {
  std::vector<MetricHandle> handles{loss};
  handles.insert(handles.end(), plan.metrics.begin(), plan.metrics.end());
  handles.insert(handles.end(), plan.weighted_metrics.begin(), plan.weighted_metrics.end());
  handles.insert(handles.end(), plan.step_metrics.begin(), plan.step_metrics.end());
  for (const MetricHandle& metric : handles) {
    if (metric.state()->rule().result_shape().elements() != 1)
      throw InvalidArgument(
          "the metric '{}' is not one number, as the logs of a training have; update it in a step function, "
          "and "
          "read its result() in a callback",
          metric.name());
    if (!(metric.state()->strategy() == strategy)) metric.bind(strategy);
  }
  return handles;
}

}  // namespace

double examples_of(const StepOutcome& outcome, LossReduction reduction) {
  if (reduction == LossReduction::kSum) return 1.0 / get_replica_context()->num_replicas_in_sync();
  if (!outcome.losses) return outcome.sum.examples;
  if (reduction == LossReduction::kMeanWithSampleWeight && outcome.weights)
    return sum_on_host(outcome.weights->on_host(), std::nullopt);
  return static_cast<double>(outcome.losses->elements());
}

EpochMetrics::EpochMetrics(const Strategy& strategy, const MetricPlan& plan)
    : plan_(plan), loss_(LossHandle()), set_(all_of(strategy, loss_, plan)) {
  if (plan.reduction == LossReduction::kNone)
    throw InvalidArgument("a Trainer needs one loss for each step; choose a reduction other than kNone");
}

void EpochMetrics::add(const StepOutcome& outcome) {
  if (outcome.losses) require_losses_of_examples(*outcome.losses, outcome.weights);
  const double loss =
      outcome.losses ? sum_on_host(outcome.losses->on_host(), outcome.weights) : outcome.sum.sum;
  const double examples = examples_of(outcome, plan_.reduction);
  loss_.state()->change([&](std::span<double> sums) {
    sums[0] += loss;
    sums[1] += examples;
  });
  if (!outcome.labels || !outcome.predictions) return;
  for (const Metric& metric : plan_.metrics) metric.update_state(*outcome.labels, *outcome.predictions);
  for (const Metric& metric : plan_.weighted_metrics)
    metric.update_state(*outcome.labels, *outcome.predictions, outcome.weights);
}

void EpochMetrics::set_logs(Logs& logs) {
  for (const MetricResult& metric : set_.results()) logs.set(metric.name, metric.value());
}

void apply_sum(Optimizer& optimizer, const std::vector<GradientAndVariable>& gradients,
               const StepOutcome& outcome, LossReduction reduction) {
  ApplyOptions options{.aggregation = GradientAggregation::kSumInPlace};
  if (reduction != LossReduction::kSum) options.examples = examples_of(outcome, reduction);
  optimizer.apply_gradients(gradients, options);
}

std::optional<Tensor> scaled_weights(const StepOutcome& outcome, const Optimizer& optimizer) {
  if (!optimizer.update_options().loss_scale) return outcome.weights;
  const double scale = optimizer.loss_scale();
  const Device device = outcome.losses->device();
  const Tensor scaled =
      outcome.weights
          ? outcome.weights->on_host().cast(DType::kFloat32).clone()
          : Tensor::full({static_cast<std::int64_t>(outcome.losses->elements())}, DType::kFloat32, 1);
  for (float& weight : scaled.span<float>()) weight = static_cast<float>(weight * scale);
  return is_cpu(device) ? scaled : scaled.to(device);
}

void require_losses_of_rows(const StepOutcome& outcome) {
  if (!outcome.losses || !outcome.predictions || outcome.predictions->shape().rank() == 0) return;
  const std::int64_t rows = outcome.predictions->shape()[0];
  const auto losses = static_cast<std::int64_t>(outcome.losses->elements());
  if (losses == rows || losses > 1) return;
  throw InvalidArgument(
      "the model's loss() returned {} losses for predictions of {} examples; it returns one for each "
      "example, "
      "and not their sum or mean: the Trainer divides by the examples of all replicas",
      losses, rows);
}

void require_usable(const std::map<std::int64_t, double>& class_weight) {
  for (const auto& [label, weight] : class_weight) {
    if (!std::isfinite(weight) || weight < 0)
      throw InvalidArgument(
          "fit: class_weight of class {} is {}; it must be a finite number, and not negative", label, weight);
  }
}

Tensor weights_by_class(const std::map<std::int64_t, double>& class_weight, const StepOutcome& outcome) {
  if (outcome.weights)
    throw InvalidArgument(
        "fit: class_weight was given, but the batches have weights already; multiply them into those");
  const std::size_t examples = outcome.losses->elements();
  if (!outcome.labels || outcome.labels->elements() != examples)
    throw InvalidArgument("fit: class_weight needs a label for each of the {} examples; the labels are {}",
                          examples, outcome.labels ? describe(*outcome.labels) : "missing");
  const Tensor classes = outcome.labels->on_host().cast(DType::kInt64);
  Tensor weights = Tensor::full({static_cast<std::int64_t>(examples)}, DType::kFloat32, 1);
  for (std::size_t i = 0; i < examples; ++i) {
    const auto found = class_weight.find(classes.span<std::int64_t>()[i]);
    if (found != class_weight.end()) weights.span<float>()[i] = static_cast<float>(found->second);
  }
  return weights;
}

}  // namespace cohort::detail
