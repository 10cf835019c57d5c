// Metrics of predictions that say yes or no: a prediction above a threshold says yes. Labels are 0 and 1, in
// the shape of the predictions; weights are one for each prediction, one for each row, or one for all.
//
// All of them keep the weights of the labels 1 and of the labels 0 between each two thresholds, from which
// true and false positives and negatives follow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <cohort/train/metrics/metric.h>

namespace cohort::metrics {

struct ThresholdOptions {
  /// The result has a number for each; empty: 0.5 alone, or none where `top_k` is given. One: a scalar.
  std::vector<double> thresholds = {};
  /// Only the k largest predictions of a row say yes, the first of equal ones.
  std::optional<int> top_k = {};
  /// Only this column counts.
  std::optional<int> class_id = {};
};

// All of these throw InvalidArgument for options that have no meaning, and in update_state for labels other
// than 0 and 1.

/// TP / (TP + FP): how much of what was predicted is there. 0 where nothing was predicted.
[[nodiscard]] Metric precision(const ThresholdOptions& options = {}, const std::string& name = "precision");
/// TP / (TP + FN): how much of what is there was predicted. 0 where nothing is there.
[[nodiscard]] Metric recall(const ThresholdOptions& options = {}, const std::string& name = "recall");
/// The weights of right and wrong answers.
[[nodiscard]] Metric true_positives(const ThresholdOptions& options = {},
                                    const std::string& name = "true_positives");
[[nodiscard]] Metric false_positives(const ThresholdOptions& options = {},
                                     const std::string& name = "false_positives");
[[nodiscard]] Metric true_negatives(const ThresholdOptions& options = {},
                                    const std::string& name = "true_negatives");
[[nodiscard]] Metric false_negatives(const ThresholdOptions& options = {},
                                     const std::string& name = "false_negatives");

// The best of one at the thresholds where the other is at least `least`; 0 where it never is. Sensitivity is
// the recall, specificity TN / (TN + FP). Predictions are from 0 to 1, and as many thresholds lie evenly
// there.

[[nodiscard]] Metric sensitivity_at_specificity(double least, int thresholds = 200,
                                                const std::string& name = "sensitivity_at_specificity");
[[nodiscard]] Metric specificity_at_sensitivity(double least, int thresholds = 200,
                                                const std::string& name = "specificity_at_sensitivity");
[[nodiscard]] Metric precision_at_recall(double least, int thresholds = 200,
                                         const std::string& name = "precision_at_recall");
[[nodiscard]] Metric recall_at_precision(double least, int thresholds = 200,
                                         const std::string& name = "recall_at_precision");

enum class Curve : std::uint8_t {
  kRoc,  ///< true positive rate over false positive rate
  kPr,   ///< precision over recall
};

/// How the curve runs between two thresholds.
enum class Summation : std::uint8_t {
  kInterpolation,  ///< straight; for precision over recall as in [Davis & Goadrich 2006, "The Relationship
                   ///< Between Precision-Recall and ROC Curves"]
  kMinoring,       ///< at the lower of the two
  kMajoring,       ///< at the higher
};

struct AucOptions {
  int num_thresholds = 200;  ///< evenly from 0 to 1, with one below and one above all
  Curve curve = Curve::kRoc;
  Summation summation = Summation::kInterpolation;
  std::vector<double> thresholds = {};  ///< between 0 and 1, instead of `num_thresholds`
  bool from_logits = false;             ///< predictions are numbers of which the sigmoid is from 0 to 1
  int labels = 1;                       ///< several: the mean of the areas of so many columns
};

/// The area under the curve that the thresholds draw; 0, and a warning once, where there is none: labels are
/// all of one class, or with `kPr` all negative.
/// @throws InvalidArgument in update_state also for a prediction that is not from 0 to 1.
[[nodiscard]] Metric auc(const AucOptions& options = {}, const std::string& name = "auc");

}  // namespace cohort::metrics
