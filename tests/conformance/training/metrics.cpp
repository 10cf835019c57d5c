// Recorded lines of metrics.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include <cohort/train/losses/classification_losses.h>
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

constexpr std::string_view kCounts = "counts are results";
constexpr std::string_view kInRange = "labels and predictions out of range are errors";
constexpr std::string_view kWeights = "weights of a confusion matrix are not rounded";
constexpr std::string_view kOneForAll = "one weight for all is a weight for each";
constexpr std::string_view kSumsNotVariables = "a metric has sums, not variables";

using Make = Metric (*)(const Json& args);

metrics::ThresholdOptions thresholds_of(const Json& args) {
  metrics::ThresholdOptions options{.thresholds = args.value("thresholds", std::vector<double>())};
  if (args.contains("top_k")) options.top_k = args.at("top_k").get<int>();
  return options;
}

Metric auc_of(const Json& args) {
  static const std::map<std::string, metrics::Summation> kSummations{
      {"interpolation", metrics::Summation::kInterpolation},
      {"minoring", metrics::Summation::kMinoring},
      {"majoring", metrics::Summation::kMajoring}};
  return metrics::auc(
      {.num_thresholds = args.value("num_thresholds", 200),
       .curve = args.value("curve", "ROC") == "PR" ? metrics::Curve::kPr : metrics::Curve::kRoc,
       .summation = kSummations.at(args.value("summation_method", "interpolation")),
       .thresholds = args.value("thresholds", std::vector<double>())});
}

Metric f_score_of(const Json& args) {
  static const std::map<std::string, metrics::ClassAverage> kAverages{
      {"none", metrics::ClassAverage::kNone},
      {"micro", metrics::ClassAverage::kMicro},
      {"macro", metrics::ClassAverage::kMacro},
      {"weighted", metrics::ClassAverage::kWeighted}};
  return metrics::f_score(
      3, {.average = kAverages.at(args.value("average", "none")), .beta = args.value("beta", 1.0)});
}

const std::map<std::string, Make>& metrics_by_name() {
  using namespace metrics;
  static const std::map<std::string, Make> kMetrics{
      {"Accuracy", [](const Json&) { return accuracy(); }},
      {"BinaryAccuracy", [](const Json& args) { return binary_accuracy(args.value("threshold", 0.5)); }},
      {"CategoricalAccuracy", [](const Json&) { return categorical_accuracy(); }},
      {"SparseCategoricalAccuracy", [](const Json&) { return sparse_categorical_accuracy(); }},
      {"TopKCategoricalAccuracy", [](const Json& args) { return top_k_categorical_accuracy(args.at("k")); }},
      {"SparseTopKCategoricalAccuracy",
       [](const Json& args) { return sparse_top_k_categorical_accuracy(args.at("k")); }},
      {"Precision", [](const Json& args) { return precision(thresholds_of(args)); }},
      {"Recall", [](const Json& args) { return recall(thresholds_of(args)); }},
      {"TruePositives", [](const Json& args) { return true_positives(thresholds_of(args)); }},
      {"TrueNegatives", [](const Json& args) { return true_negatives(thresholds_of(args)); }},
      {"FalsePositives", [](const Json& args) { return false_positives(thresholds_of(args)); }},
      {"FalseNegatives", [](const Json& args) { return false_negatives(thresholds_of(args)); }},
      {"SensitivityAtSpecificity",
       [](const Json& args) { return sensitivity_at_specificity(args.at("specificity")); }},
      {"SpecificityAtSensitivity",
       [](const Json& args) { return specificity_at_sensitivity(args.at("sensitivity")); }},
      {"PrecisionAtRecall", [](const Json& args) { return precision_at_recall(args.at("recall")); }},
      {"RecallAtPrecision", [](const Json& args) { return recall_at_precision(args.at("precision")); }},
      {"AUC", auc_of},
      {"F1Score", f_score_of},
      {"FBetaScore", f_score_of},
      {"MeanIoU", [](const Json& args) { return mean_iou(args.at("num_classes")); }},
      {"IoU",
       [](const Json& args) { return mean_iou(args.at("num_classes"), {}, args.at("target_class_ids")); }},
      {"OneHotMeanIoU",
       [](const Json& args) { return mean_iou(args.at("num_classes"), {.form = ClassForm::kOneHot}); }},
      {"BinaryIoU",
       [](const Json& args) {
         return mean_iou(2, {.form = ClassForm::kThreshold}, args.at("target_class_ids"));
       }},
      {"MeanSquaredError", [](const Json&) { return mean_of(losses::mean_squared_error()); }},
      {"RootMeanSquaredError", [](const Json&) { return root_mean_squared_error(); }},
      {"MeanAbsoluteError", [](const Json&) { return mean_of(losses::mean_absolute_error()); }},
      {"MeanAbsolutePercentageError",
       [](const Json&) { return mean_of(losses::mean_absolute_percentage_error()); }},
      {"MeanSquaredLogarithmicError",
       [](const Json&) { return mean_of(losses::mean_squared_logarithmic_error()); }},
      {"LogCoshError", [](const Json&) { return mean_of(losses::log_cosh()); }},
      {"Poisson", [](const Json&) { return mean_of(losses::poisson()); }},
      {"KLDivergence", [](const Json&) { return mean_of(losses::kl_divergence()); }},
      {"Hinge", [](const Json&) { return mean_of(losses::hinge()); }},
      {"SquaredHinge", [](const Json&) { return mean_of(losses::squared_hinge()); }},
      {"CategoricalHinge", [](const Json&) { return mean_of(losses::categorical_hinge()); }},
      {"BinaryCrossentropy", [](const Json&) { return mean_of(losses::binary_crossentropy()); }},
      {"CategoricalCrossentropy", [](const Json&) { return mean_of(losses::categorical_crossentropy()); }},
      {"SparseCategoricalCrossentropy",
       [](const Json&) { return mean_of(losses::sparse_categorical_crossentropy()); }},
      {"CosineSimilarity", [](const Json&) { return cosine_similarity(); }},
      {"R2Score", [](const Json&) { return r2_score(); }}};
  return kMetrics;
}

/// Any metric, also one of values.
class AnyMetric {
 public:
  explicit AnyMetric(const Json& input) : name_(input.at("metric")) {
    if (name_ == "Mean")
      mean_.emplace();
    else if (name_ == "Sum")
      sum_.emplace();
    else
      metric_.emplace(metrics_by_name().at(name_)(input.at("args")));
    // A batch is one row, of which the largest is looked for.
    is_row_ = input.at("args").contains("top_k");
  }

  [[nodiscard]] const MetricHandle& handle() const {
    if (mean_) return *mean_;
    return sum_ ? static_cast<const MetricHandle&>(*sum_) : *metric_;
  }

  void update(const Json& labels, const Json& predictions, const Json& weights) const {
    const std::optional<Tensor> weight = optional_tensor_of(weights);
    if (mean_) return mean_->update_state(tensor_of(labels), weight);
    if (sum_) return sum_->update_state(tensor_of(labels), weight);
    metric_->update_state(rows_of(labels), rows_of(predictions), weight);
  }

 private:
  [[nodiscard]] Tensor rows_of(const Json& numbers) const {
    const Tensor tensor = tensor_of(numbers);
    return is_row_ ? tensor.reshape({1, -1}) : tensor;
  }

  std::string name_;
  bool is_row_ = false;
  std::optional<Mean> mean_;
  std::optional<Sum> sum_;
  std::optional<Metric> metric_;
};

Json shown(const Tensor& result) {
  return result.shape().rank() == 0 ? show(result.item<double>()) : show(result);
}

/// Step k: replica r updates with batch (k + r) mod 3.
Json fed(const Record& record) {
  const Json& input = record.arguments;
  const Json& batches = input.at("batches");
  const Json& labels = batches.at("a(y_true or values)");
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  const AnyMetric metric(input);
  const auto batch_of = [&](const char* part, std::size_t batch) {
    return batches.at(part).is_null() ? Json() : batches.at(part).at(batch);
  };
  Json results = Json::array();
  for (std::size_t step = 0; step < labels.size(); ++step) {
    strategy.run([&](ReplicaContext& replica) {
      const std::size_t batch =
          (step + static_cast<std::size_t>(replica.replica_id_in_sync_group())) % labels.size();
      metric.update(labels.at(batch), batch_of("b(y_pred)", batch), batch_of("sample_weight", batch));
    });
    results.push_back(shown(metric.handle().result()));
  }
  metric.handle().reset_state();
  return {{"result_after_each_step", results}, {"after_reset", shown(metric.handle().result())}};
}

/// A number of each replica, as the original shows variables.
Json of_replicas(const Strategy& strategy, const MetricHandle& metric, std::size_t sum) {
  Json list = Json::array();
  for (int replica = 0; replica < strategy.num_replicas_in_sync(); ++replica)
    list.push_back(metric.sums(replica)[sum]);
  if (strategy.extended().is_default()) return {{"Variable", list.front()}};
  return {{"SyncOnReadVariable", list}};
}

Json sums_of(const Strategy& strategy, const MetricHandle& metric) {
  return {of_replicas(strategy, metric, 0), of_replicas(strategy, metric, 1)};
}

/// What a checkpoint gives to one replica.
Json saved_sums(const Strategy& strategy, const Mean& mean) {
  const CheckpointFolder folder;
  Checkpoint checkpoint(strategy);
  checkpoint.add("mean", mean);
  const std::string path = checkpoint.save(folder.path(), 1);
  const Mean single;
  const Strategy alone(StrategyExtended::default_strategy());
  single.bind(alone);
  Checkpoint other(alone);
  other.add("mean", single);
  other.restore(path).assert_consumed();
  return {{"total/.ATTRIBUTES/VARIABLE_VALUE", single.sums(0)[0]},
          {"count/.ATTRIBUTES/VARIABLE_VALUE", single.sums(0)[1]}};
}

Json of_mean(const Record& record) {
  const std::string name = case_of(record);
  const Strategy strategy = strategy_named(strategy_of(record));
  std::optional<StrategyScope> scope(std::in_place, strategy);
  const Mean mean;
  const auto update = [&](const auto& values) {
    strategy.run(
        [&](ReplicaContext& replica) { mean.update_state(values(replica.replica_id_in_sync_group())); });
  };
  if (name == "Mean_variables") {
    update([](int r) { return vector({1.0 * (r + 1), 3.0 * (r + 1)}); });
    return sums_of(strategy, mean);
  }
  if (name == "Mean_update_cross_replica") {
    mean.update_state(vector({4}));
    return {show(mean.result().item<double>()), sums_of(strategy, mean)};
  }
  if (name == "Mean_result_in_replica") {
    return show(strategy.run([&](ReplicaContext& replica) {
      mean.update_state(number(2.0 * replica.replica_id_in_sync_group()));
      return mean.result();
    }));
  }
  if (name == "Mean_empty_batch") {
    update([](int) { return vector({}); });
    const double before = mean.result().item<double>();
    update([](int) { return vector({2}); });
    return {before, mean.result().item<double>()};
  }
  if (name == "Mean_nan") {
    update([](int) { return vector({1, std::numeric_limits<double>::quiet_NaN()}); });
    return show(mean.result().item<double>());
  }
  if (name == "Mean_float32_precision") {
    for (int i = 0; i < 3; ++i) update([](int) { return Tensor::full({1000}, DType::kFloat32, 16777216); });
    return {mean.result().item<double>(), sums_of(strategy, mean)};
  }
  if (name == "Mean_weight_shape") {
    mean.update_state(vector({1, 2, 3}), vector({1, 2}));
    return nullptr;
  }
  update([](int r) { return vector({1.0 + r, 2.0 + r}); });
  scope.reset();
  return saved_sums(strategy, mean);
}

Json sum_after_reset(const Record& record) {
  const Strategy strategy = strategy_named(strategy_of(record));
  const auto scope = strategy.scope();
  const Sum sum;
  strategy.run([&] { sum.update_state(number(5)); });
  strategy.run([&] { sum.reset_state(); });
  strategy.run([&] { sum.update_state(number(1)); });
  return show(sum.result().item<double>());
}

Json after_update(const Metric& metric, const Tensor& labels, const Tensor& predictions) {
  metric.update_state(labels, predictions);
  return shown(metric.result());
}

/// A loss of one's own: |a - b|.
class Distance final : public LossRule {
 public:
  void values(const Tensor& labels, const Tensor& predictions, const Tensor& output) const override {
    for (std::size_t i = 0; i < output.elements(); ++i)
      output.span<float>()[i] = std::abs(labels.span<float>()[i] - predictions.span<float>()[i]);
  }
  void gradients(const Tensor&, const Tensor&, const Tensor*, const Tensor&) const override {}
};

Json confusion(const std::vector<int>& labels, const std::vector<int>& predictions, int classes,
               const std::optional<Tensor>& weights = {}) {
  const Metric matrix = metrics::confusion_matrix(classes);
  matrix.update_state(Tensor::from(labels), Tensor::from(predictions), weights);
  return show(matrix.result());
}

Json edge(const Record& record) {
  using namespace metrics;
  const Tensor two_classes = tensor({0, 1, 0, 1, 0, 0}, {2, 3});
  const Tensor scores = tensor({.1, .8, .6, .2, .7, .1}, {2, 3});
  const std::map<std::string, std::function<Json()>> cases{
      {"edge_MeanMetricWrapper",
       [] {
         return after_update(mean_of(Loss("distance", std::make_shared<Distance>())), vector({1, 2}),
                             vector({3, 5}));
       }},
      {"edge_Mean_scalar_weight",
       [] {
         const Mean mean;
         mean.update_state(vector({1, 3}), number(2));
         mean.update_state(vector({5}), number(0.5));
         return shown(mean.result());
       }},
      {"edge_Mean_noupdate", [] { return shown(Mean().result()); }},
      {"edge_Sum_noupdate", [] { return shown(Sum().result()); }},
      {"edge_AUC_noupdate", [] { return shown(auc().result()); }},
      {"edge_Precision_noupdate", [] { return shown(precision().result()); }},
      {"edge_MeanIoU_noupdate", [] { return shown(mean_iou(2).result()); }},
      {"edge_AUC_label_range",
       [] {
         return after_update(auc(), vector({0, 2}), vector({.1, .2}));
       }},
      {"edge_AUC_pred_range",
       [] {
         return after_update(auc(), vector({0, 1}), vector({.1, 1.5}));
       }},
      {"edge_AUC_multilabel",
       [] {
         return after_update(auc({.num_thresholds = 5, .labels = 2}), tensor({0, 1, 1, 0, 1, 1}, {3, 2}),
                             tensor({.1, .6, .8, .3, .4, .2}, {3, 2}));
       }},
      {"edge_AUC_from_logits",
       [] {
         return after_update(auc({.num_thresholds = 5, .from_logits = true}), vector({0, 1, 1}),
                             vector({-2, .5, 3}));
       }},
      {"edge_Precision_class_id",
       [&] { return after_update(precision({.class_id = 1}), two_classes, scores); }},
      {"edge_Recall_top_k", [&] { return after_update(recall({.top_k = 2}), two_classes, scores); }},
      {"edge_Sparse_tie",
       [] {
         return after_update(sparse_categorical_accuracy(), vector({0, 1, 2}),
                             tensor(std::vector<double>(9, .3), {3, 3}));
       }},
      {"edge_BinaryAccuracy_at_threshold",
       [] {
         return after_update(binary_accuracy(), tensor({1, 0}, {2, 1}), tensor({.5, .5}, {2, 1}));
       }},
      {"edge_SparseTopK_k_gt",
       [] {
         return after_update(sparse_top_k_categorical_accuracy(5), vector({0, 1}),
                             tensor({.3, .3, .1, .9}, {2, 2}));
       }},
      {"edge_MeanIoU_oob",
       [] {
         return after_update(mean_iou(2), vector({0, 3}), vector({0, 1}));
       }},
      {"edge_confusion_matrix_w",
       [] {
         return confusion({0, 1, 2, 1}, {0, 2, 2, 1}, 4, vector({1, .5, 2, 3}));
       }},
      {"edge_confusion_matrix_neg", [] { return confusion({-1}, {0}, 1); }},
      {"edge_confusion_matrix_oob", [] { return confusion({5}, {0}, 2); }}};
  return cases.at(case_of(record))();
}

std::size_t replicas_of(const Record& record) {
  const char last = strategy_of(record).back();
  return last == '2' || last == '3' ? static_cast<std::size_t>(last - '0') : 1;
}

/// By hand: `add(label, prediction, weight)` for each example, and `result()` after each step.
template <class Add, class Result>
Json metric_by_hand(const Record& record, Add add, Result result, const Json& after_reset) {
  const Json& batches = record.arguments.at("batches");
  Json results = Json::array();
  for (std::size_t step = 0; step < 3; ++step) {
    for (std::size_t replica = 0; replica < replicas_of(record); ++replica) {
      const std::size_t batch = (step + replica) % 3;
      const Json& labels = batches.at("a(y_true or values)").at(batch);
      for (std::size_t i = 0; i < labels.size(); ++i)
        add(labels.at(i), batches.at("b(y_pred)").at(batch).at(i),
            batches.at("sample_weight").at(batch).at(i).get<double>());
    }
    results.push_back(result());
  }
  return {{"result_after_each_step", results}, {"after_reset", after_reset}};
}

Json counted_by_hand(const Record& record) {
  std::vector<double> above{0, 0};
  const auto add = [&](const Json& label, const Json& score, double weight) {
    above[0] += score.get<double>() > 0.3 ? label.get<double>() * weight : 0;
    above[1] += score.get<double>() > 0.7 ? label.get<double>() * weight : 0;
  };
  return metric_by_hand(record, add, [&] { return Json(above); }, {0.0, 0.0});
}

std::size_t class_by_hand(const Json& value) {
  if (value.is_array())
    return static_cast<std::size_t>(std::max_element(value.begin(), value.end()) - value.begin());
  return value.is_number_integer() ? value.get<std::size_t>()
                                   : static_cast<std::size_t>(value.get<double>() >= 0.5);
}

Json iou_by_hand(const Record& record) {
  double matrix[3][3] = {};
  const auto add = [&](const Json& label, const Json& prediction, double weight) {
    matrix[class_by_hand(label)][class_by_hand(prediction)] += weight;
  };
  const auto mean = [&] {
    double sum = 0;
    double present = 0;
    for (std::size_t each = 0; each < 3; ++each) {
      double either = -matrix[each][each];
      for (std::size_t other = 0; other < 3; ++other) either += matrix[each][other] + matrix[other][each];
      sum += either == 0 ? 0 : matrix[each][each] / either;
      present += either == 0 ? 0 : 1;
    }
    return Json(sum / present);
  };
  return metric_by_hand(record, add, mean, 0.0);
}

Json sums_by_hand(const Record& record) {
  if (record.id.find("/default/") != std::string::npos) return {{{"Variable", 4.0}}, {{"Variable", 2.0}}};
  return {{{"SyncOnReadVariable", {4.0, 8.0}}}, {{"SyncOnReadVariable", {2.0, 2.0}}}};
}

}  // namespace

std::vector<Family> metric_families() {
  const auto error = [](const Record&) { return an_error(); };
  return {{.patterns = {"w2/metric/*/edge_*"},
           .run = edge,
           .differences = {{"w2/metric/*/edge_AUC_label_range", kInRange, error},
                           {"w2/metric/*/edge_AUC_pred_range", kInRange, error},
                           {"w2/metric/*/edge_MeanIoU_oob", kInRange, error},
                           {"w2/metric/*/edge_Mean_scalar_weight", kOneForAll,
                            [](const Record&) { return Json(10.5 / 4.5); }}}},
          {.patterns = {"w2/metric/*/Mean_variables", "w2/metric/*/Mean_update_cross_replica",
                        "w2/metric/*/Mean_result_in_replica", "w2/metric/*/Mean_empty_batch",
                        "w2/metric/*/Mean_nan", "w2/metric/*/Mean_float32_precision",
                        "w2/metric/*/Mean_weight_shape", "w2/metric/*/Mean_checkpoint_values"},
           .run = of_mean,
           .differences = {{"w2/metric/*/Mean_variables", kSumsNotVariables, sums_by_hand}}},
          {.patterns = {"w2/metric/*/Sum_reset_in_replica"}, .run = sum_after_reset},
          {.patterns = {"w2/metric/*_now", "w2/metric/*_w"},
           .run = fed,
           .differences = {{"w2/metric/*/TruePositives_thresholds=*_w", kCounts, counted_by_hand},
                           {"w2/metric/*/BinaryIoU_*_w", kWeights, iou_by_hand},
                           {"w2/metric/*/OneHotMeanIoU_*_w", kWeights, iou_by_hand},
                           {"w2/metric/*/MeanIoU_*_w", kWeights, iou_by_hand}}}};
}

}  // namespace cohort::conformance
