// What metrics compute, and what they refuse. The values of the original are replayed by tests/conformance.
#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>

#include <cohort/train/losses/classification_losses.h>
#include <cohort/train/losses/regression_losses.h>
#include <cohort/train/metrics/accuracies.h>
#include <cohort/train/metrics/binary_metrics.h>
#include <cohort/train/metrics/class_metrics.h>
#include <cohort/train/metrics/loss_metrics.h>

#include "../../../benchmarks/dispatch/allocations.h"
#include "../../strategy/strategies.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

double result_of(const Metric& metric, const Tensor& labels, const Tensor& predictions,
                 const std::optional<Tensor>& weights = {}) {
  metric.update_state(labels, predictions, weights);
  return metric.result().item<double>();
}

/// Halves hold them exactly.
const Tensor kScores = Tensor::from({0.125F, 0.875F, 0.5F, 0.625F, 0.25F, 0.75F});
const Tensor kTruths = Tensor::from({0, 1, 1, 0, 0, 1});

TEST(Metrics, TakeAnyDTypes) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const Tensor scores = kScores.cast(dtype);
    for (const DType labels : {DType::kInt8, DType::kInt64, DType::kFloat64, DType::kBool}) {
      const Tensor truths = kTruths.cast(labels);
      EXPECT_DOUBLE_EQ(result_of(metrics::binary_accuracy(), truths, scores), 4.0 / 6) << to_string(dtype);
      EXPECT_DOUBLE_EQ(result_of(metrics::precision(), truths, scores), 2.0 / 3) << to_string(dtype);
      EXPECT_EQ(result_of(metrics::mean_of(losses::mean_squared_error()), truths, scores), 0.796875 / 6)
          << to_string(dtype);
    }
  }
}

TEST(Metrics, CountTheAnswersAtThresholdsInAnyOrder) {
  const metrics::ThresholdOptions options{.thresholds = {0.6, 0.2, 0.8}};
  const auto counts = [&](Metric (*make)(const metrics::ThresholdOptions&, const std::string&)) {
    const Metric metric = make(options, "counts");
    metric.update_state(kTruths, kScores);
    return numbers(metric.result());
  };
  EXPECT_THAT(counts(metrics::true_positives), ElementsAre(2, 3, 1));
  EXPECT_THAT(counts(metrics::false_positives), ElementsAre(1, 2, 0));
  EXPECT_THAT(counts(metrics::true_negatives), ElementsAre(2, 1, 3));
  EXPECT_THAT(counts(metrics::false_negatives), ElementsAre(1, 0, 2));
}

TEST(Metrics, CountAPredictionAtAThresholdBelowIt) {
  EXPECT_EQ(
      result_of(metrics::true_positives({.thresholds = {0.1}}), Tensor::from({1}), Tensor::from({0.1F})), 0);
  EXPECT_EQ(result_of(metrics::true_positives({.thresholds = {0.1}}), Tensor::from({1}), Tensor::from({0.1})),
            0);
}

TEST(Metrics, WeighPredictionsOrRows) {
  const Tensor labels = Tensor::from({1, 0, 0, 1}).reshape({2, 2});
  const Tensor scores = Tensor::from({0.9, 0.9, 0.1, 0.9}).reshape({2, 2});
  const auto precision = [&](const Tensor& weights) {
    return result_of(metrics::precision(), labels, scores, weights);
  };
  EXPECT_DOUBLE_EQ(precision(Tensor::from({1.0, 3.0})), 4.0 / 5);
  EXPECT_DOUBLE_EQ(precision(Tensor::from({1.0, 2.0, 3.0, 4.0}).reshape({2, 2})), 5.0 / 7);
  EXPECT_THAT(
      [&] {
        precision(Tensor::from({1.0, 2.0, 3.0}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("the weights float64[3]")));
}

/// The share of pairs of a label 1 and a label 0 in which the former is predicted higher.
double area_by_pairs(const std::vector<double>& scores, const std::vector<int>& labels) {
  double right = 0;
  double pairs = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t k = 0; k < scores.size(); ++k) {
      if (labels[i] == 0 || labels[k] == 1) continue;
      right += scores[i] > scores[k] ? 1 : scores[i] == scores[k] ? 0.5 : 0;
      pairs += 1;
    }
  }
  return right / pairs;
}

TEST(Metrics, AreaUnderTheCurveIsThatOfPairs) {
  std::mt19937 random(7);
  std::vector<double> scores;
  std::vector<int> labels;
  for (int i = 0; i < 500; ++i) {
    labels.push_back(static_cast<int>(random() % 2));
    // Between the thresholds of 101, so that these tell all scores apart.
    scores.push_back((static_cast<double>(random() % 80 + 20 * static_cast<unsigned>(labels.back())) + 0.5) /
                     100);
  }
  const double expected = area_by_pairs(scores, labels);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Tensor predictions = Tensor::from(scores).cast(dtype);
    EXPECT_NEAR(result_of(metrics::auc({.num_thresholds = 101}), Tensor::from(labels), predictions), expected,
                1e-12);
  }
  // Also where the thresholds are given, and need not lie evenly.
  std::vector<double> thresholds;
  for (int i = 1; i < 100; ++i) thresholds.push_back(i / 100.0);
  EXPECT_NEAR(result_of(metrics::auc({.thresholds = thresholds}), Tensor::from(labels), Tensor::from(scores)),
              expected, 1e-12);
}

TEST(Metrics, FindTheLargestOfManyInTheirOrder) {
  const Tensor predictions = Tensor::from({0.2, 0.5, 0.5, 0.1}).reshape({1, 4});
  const auto hits = [&](int label, int k) {
    return result_of(metrics::sparse_top_k_categorical_accuracy(k), Tensor::from({label}), predictions);
  };
  EXPECT_EQ(hits(1, 1), 1);
  EXPECT_EQ(hits(2, 1), 1) << "equal predictions count in favour of the label";
  EXPECT_EQ(hits(0, 2), 0);
  EXPECT_EQ(hits(0, 3), 1);
  const Tensor labels = Tensor::from({0, 0, 1, 0}).reshape({1, 4});
  EXPECT_EQ(result_of(metrics::recall({.top_k = 1}), labels, predictions), 0) << "the first of equal ones";
  EXPECT_EQ(result_of(metrics::recall({.top_k = 2}), labels, predictions), 1);
}

TEST(Metrics, OfClassesIgnoreAClass) {
  const Metric matrix = metrics::confusion_matrix(3, {.ignore_class = 9});
  matrix.update_state(Tensor::from({0, 9, 2, 2}), Tensor::from({1, 0, 2, 0}),
                      Tensor::from({1.0, 1.0, 0.5, 0.25}));
  EXPECT_THAT(numbers(matrix.result()), ElementsAre(0, 1, 0, 0, 0, 0, 0.25, 0, 0.5));
}

TEST(Metrics, R2ScoreOfSeveralOutputsIsTheirMean) {
  const Metric score = metrics::r2_score(2);
  EXPECT_TRUE(std::isnan(score.result().item<double>()));
  const Tensor labels = Tensor::from({1.0, 1.0, 3.0, 2.0}).reshape({2, 2});
  const Tensor predictions = Tensor::from({1.0, 2.0, 3.0, 1.0}).reshape({2, 2});
  EXPECT_DOUBLE_EQ(result_of(score, labels, predictions), (1 + -3) / 2.0);
}

TEST(Metrics, R2ScoreOfConstantLabelsIsNaN) {
  for (const double label : {0.0, 0.1, -3.3, 1e9}) {
    const Metric score = metrics::r2_score();
    const Tensor labels = Tensor::full({1000, 1}, DType::kFloat64, label);
    for (int i = 0; i < 100; ++i) score.update_state(labels, Tensor::full({1000, 1}, DType::kFloat64, 0.1));
    const double result = score.result().item<double>();
    EXPECT_TRUE(std::isnan(result) && !std::signbit(result)) << label << ": " << result;
    score.update_state(Tensor::from({2 * label + 1000}).reshape({1, 1}), Tensor::from({0.1}).reshape({1, 1}));
    EXPECT_TRUE(std::isfinite(score.result().item<double>())) << label;
  }
}

TEST(Metrics, AreasOfOneClassAreZero) {
  for (const double label : {0.0, 1.0}) {
    EXPECT_EQ(result_of(metrics::auc(), Tensor::from({label, label}), Tensor::from({0.2, 0.7})), 0) << label;
  }
  const Metric precision_recall = metrics::auc({.curve = metrics::Curve::kPr});
  EXPECT_EQ(result_of(precision_recall, Tensor::from({0.0, 0.0}), Tensor::from({0.2, 0.7})), 0);
}

TEST(Metrics, ChangeNothingWhereTheyThrow) {
  const Metric accuracy = metrics::sparse_categorical_accuracy();
  const Tensor logits = Tensor::from({0.0F, 1.0F, 0.0F, 1.0F}).reshape({2, 2});
  EXPECT_THAT(
      [&] {
        accuracy.update_state(Tensor::from({1, 2}), logits);
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("a label is 2, but there are 2 classes, from 0 to 1")));
  EXPECT_EQ(accuracy.sums(0)[1], 0);
  const Metric matrix = metrics::confusion_matrix(2);
  EXPECT_THAT(
      [&] {
        matrix.update_state(Tensor::from({1, 1}), Tensor::from({0, -1}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("a prediction is -1")));
  EXPECT_THAT(
      [&] {
        matrix.update_state(Tensor::from({1, 1}), Tensor::from({0, 1}), Tensor::from({1, 2, 3}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("there are 2 rows and the weights int32[3]")));
  const Metric auc = metrics::auc();
  EXPECT_THAT(
      [&] {
        auc.update_state(Tensor::from({1, 1}), Tensor::from({0.5, std::nan("")}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("give 0 to 1, or logits")));
  EXPECT_THAT(
      [&] {
        auc.update_state(Tensor::from({1, 2}), Tensor::from({0.5, 0.5}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("a label is 2; give 0 and 1")));
  EXPECT_THAT(numbers(matrix.result()), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(auc.result().item<double>(), 0);
}

TEST(Metrics, RefuseOptionsWithoutMeaning) {
  using namespace metrics;
  const auto refuses = [](auto make, const char* text) {
    EXPECT_THAT([&] { static_cast<void>(make()); }, ThrowsMessage<InvalidArgument>(HasSubstr(text)));
  };
  refuses([] { return top_k_categorical_accuracy(0); }, "k is 0");
  refuses([] { return precision({.top_k = 0}); }, "top_k is 0");
  refuses([] { return precision({.thresholds = {std::nan("")}}); }, "not a number");
  refuses([] { return auc({.num_thresholds = 1}); }, "1 thresholds");
  refuses([] { return auc({.thresholds = {0.5, 1.5}}); }, "between 0 and 1");
  refuses([] { return auc({.labels = 0}); }, "0 labels");
  refuses([] { return recall_at_precision(1.5); }, "1.5");
  refuses([] { return confusion_matrix(0); }, "0 classes");
  refuses([] { return mean_iou(2, {}, {2}); }, "2 classes");
  refuses([] { return mean_iou(3, {.form = ClassForm::kThreshold}); }, "2 classes, not 3");
  refuses([] { return f_score(3, {.beta = 0}); }, "beta is 0");
  refuses([] { return r2_score(0); }, "0 outputs");
}

TEST(Metrics, AllocateNothingInAnUpdateLikeTheOneBefore) {
  const std::vector<Metric> all{metrics::binary_accuracy(),
                                metrics::precision({.top_k = 2}),
                                metrics::auc(),
                                metrics::mean_iou(2, {.form = metrics::ClassForm::kThreshold}),
                                metrics::f_score(6),
                                metrics::mean_of(losses::binary_crossentropy()),
                                metrics::r2_score(6)};
  const Tensor labels = kTruths.reshape({1, 6});
  const Tensor scores = kScores.cast(DType::kFloat16).reshape({1, 6});
  std::size_t before = 0;
  for (int step = 0; step < 3; ++step) {
    if (step == 1) before = bench::allocations();
    for (const Metric& metric : all) metric.update_state(labels, scores);
  }
  EXPECT_EQ(bench::allocations() - before, 0U);
}

}  // namespace
}  // namespace cohort::testing
