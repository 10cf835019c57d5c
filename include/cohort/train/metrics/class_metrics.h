// Metrics of predicted classes that look at each class: the confusion matrix, and what follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <cohort/train/metrics/metric.h>

namespace cohort::metrics {

/// What labels and predictions are.
enum class ClassForm : std::uint8_t {
  kClasses,    ///< classes from 0, in the same shape
  kOneHot,     ///< rows of [..., classes], of which the largest element is the class, the first of several
  kThreshold,  ///< labels 0 and 1, and predictions that are 1 from the threshold 0.5 on
};

struct ConfusionOptions {
  ClassForm form = ClassForm::kClasses;
  double threshold = 0.5;                         ///< for kThreshold
  std::optional<std::int64_t> ignore_class = {};  ///< examples of this label do not count
};

// All of these throw InvalidArgument in update_state for a label or a prediction that is no class.

/// [classes, classes]: row l, column p has the weight of the examples of label l that were predicted as p.
[[nodiscard]] Metric confusion_matrix(int classes, const ConfusionOptions& options = {},
                                      const std::string& name = "confusion_matrix");

/// The mean of intersection / union over the target classes that there are among labels or predictions: the
/// examples of a class that were predicted as such, of those that either are or were predicted. Without
/// targets all classes.
[[nodiscard]] Metric mean_iou(int classes, const ConfusionOptions& options = {},
                              const std::vector<int>& target_classes = {},
                              const std::string& name = "mean_iou");

/// The mean over the classes of the share of their examples that were predicted right; 0 for a class without.
[[nodiscard]] Metric mean_per_class_accuracy(int classes, const ConfusionOptions& options = {},
                                             const std::string& name = "mean_per_class_accuracy");

/// How the scores of classes become one.
enum class ClassAverage : std::uint8_t {
  kNone,      ///< they do not: the result is [classes]
  kMicro,     ///< the score of all answers together
  kMacro,     ///< their mean
  kWeighted,  ///< their mean, by the weight of the labels of each class
};

struct FScoreOptions {
  ClassAverage average = ClassAverage::kNone;
  double beta = 1;                       ///< how much more recall counts than precision
  std::optional<double> threshold = {};  ///< predictions above say yes; unset: the largest of each row does
};

/// (1 + beta^2) precision recall / (beta^2 precision + recall) of each class [van Rijsbergen 1979,
/// "Information Retrieval"]. Labels of 0 and 1 and predictions: [..., classes].
[[nodiscard]] Metric f_score(int classes, const FScoreOptions& options = {},
                             const std::string& name = "f_score");

}  // namespace cohort::metrics
