// Recorded lines of the original's first metrics, which are functions: replayed with the metrics that there
// are.
#include <cmath>
#include <functional>
#include <string>

#include <cohort/train/losses/regression_losses.h>
#include <cohort/train/metrics/accuracies.h>
#include <cohort/train/metrics/binary_metrics.h>
#include <cohort/train/metrics/class_metrics.h>
#include <cohort/train/metrics/loss_metrics.h>
#include <cohort/train/metrics/means.h>

#include "../scenarios/checkpoints.h"
#include "families.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kOwnResult = "inside a replica a metric is the replica's own";

Tensor each(const Tensor& tensor, double (*function)(double)) {
  const Tensor result = tensor.clone();
  for (float& value : result.span<float>()) value = static_cast<float>(function(value));
  return result;
}

double above_half(double value) { return value > 0.5 ? 1 : 0; }
double below_one(double value) { return value < 1 ? 1 : 0; }
double sigmoid(double value) { return 1 / (1 + std::exp(-value)); }

/// What the replicas do with their predictions, and what they see of it.
struct FirstMetric {
  std::function<void(const Tensor& labels, const Tensor& predictions, const std::optional<Tensor>& weights)>
      update;
  std::function<Json()> seen;    ///< after an update
  std::function<Json()> result;  ///< in the end
};

Json number_of(const MetricHandle& metric) { return metric.result().item<double>(); }

template <class M>
FirstMetric of(const M& metric, double (*prepare)(double) = nullptr) {
  return {
      .update =
          [=](const Tensor& labels, const Tensor& predictions, const std::optional<Tensor>& weights) {
            const Tensor prepared = prepare == nullptr ? predictions : each(predictions, prepare);
            if constexpr (std::is_same_v<M, Metric>)
              metric.update_state(labels, prepared, weights);
            else
              metric.update_state(prepared, weights);
          },
      .seen = [=] { return metric.result().shape().rank() == 0 ? number_of(metric) : show(metric.result()); },
      .result =
          [=] { return metric.result().shape().rank() == 0 ? number_of(metric) : show(metric.result()); }};
}

Json accuracy_of_classes(const Tensor& matrix) {
  Json shares = Json::array();
  for (std::int64_t label = 0; label < 2; ++label) {
    const auto row = matrix.row(label).span<double>();
    const double total = row[0] + row[1];
    shares.push_back(total == 0 ? 0 : row[static_cast<std::size_t>(label)] / total);
  }
  return shares;
}

/// The original shows the confusion matrix, or its rows' shares, after an update.
FirstMetric with_matrix(const Metric& metric, const std::function<Json(const Tensor&)>& seen) {
  const Metric matrix = metrics::confusion_matrix(2);
  return {.update =
              [=](const Tensor& labels, const Tensor& predictions, const std::optional<Tensor>& weights) {
                const Tensor prepared = each(predictions, above_half);
                matrix.update_state(labels, prepared, weights);
                metric.update_state(labels, prepared, weights);
              },
          .seen = [=] { return seen(matrix.result()); },
          .result = [=] { return number_of(metric); }};
}

FirstMetric make(const std::string& name) {
  using namespace metrics;
  if (name == "mean") return of(Mean());
  if (name == "mean_tensor") return of(MeanTensor({4}));
  if (name == "percentage_below") return of(Mean(), below_one);
  if (name == "accuracy")
    return of(
        accuracy(), +[](double value) { return std::nearbyint(value); });
  if (name == "mean_squared_error") return of(mean_of(losses::mean_squared_error()));
  if (name == "root_mean_squared_error") return of(root_mean_squared_error());
  if (name == "mean_absolute_error") return of(mean_of(losses::mean_absolute_error()));
  if (name == "mean_relative_error") return of(mean_relative_error(2));
  if (name == "auc") return of(auc({.num_thresholds = 5}), sigmoid);
  if (name == "precision") return of(precision(), above_half);
  if (name == "recall") return of(recall(), above_half);
  if (name == "true_positives") return of(true_positives(), above_half);
  if (name == "mean_iou") return with_matrix(mean_iou(2), [](const Tensor& matrix) { return show(matrix); });
  return with_matrix(mean_per_class_accuracy(2), accuracy_of_classes);
}

void add_step(const FirstMetric& metric, const Json& input, int replica) {
  const Tensor predictions = tensor_of(input.at("x"));
  for (float& value : predictions.span<float>()) value += 0.5F * static_cast<float>(replica);
  metric.update(tensor_of(input.at("y")), predictions, optional_tensor_of(input.at("weights")));
}

std::string name_of(const Record& record) {
  const std::string name = record.arguments.at("metric");
  return name.substr(name.rfind('.') + 1);
}

Json replayed(const Record& record) {
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  const FirstMetric metric = make(name_of(record));
  Json seen = Json::array();
  for (int step = 0; step < 2; ++step) {
    const auto results = strategy.run([&](ReplicaContext& replica) {
      add_step(metric, record.arguments, replica.replica_id_in_sync_group());
      return metric.seen().dump();
    });
    Json of_step = Json::array();
    for (const std::string& result : strategy.local_results(results)) of_step.push_back(Json::parse(result));
    seen.push_back(of_step);
  }
  return {{"update_op_values", seen}, {"value", {metric.result()}}};
}

/// A metric of its own for each replica; the value is the recorded one.
Json replicas_apart(const Record& record) {
  Json seen = Json::array();
  const FirstMetric first = make(name_of(record));
  const FirstMetric second = make(name_of(record));
  for (int step = 0; step < 2; ++step) {
    add_step(first, record.arguments, 0);
    add_step(second, record.arguments, 1);
    seen.push_back({first.seen(), second.seen()});
  }
  return {{"update_op_values", seen}, {"value", record.outcome.at("value")}};
}

}  // namespace

std::vector<Family> first_metric_families() {
  return {{.patterns = {"w2/metric_v1/*"},
           .run = replayed,
           .differences = {{"w2/metric_v1/central2/*", kOwnResult, replicas_apart}}}};
}

}  // namespace cohort::conformance
