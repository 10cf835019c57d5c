// Accuracies: the share of examples that were predicted right, weighed by their weights.
#pragma once

#include <string>

#include <cohort/train/metrics/metric.h>

namespace cohort::metrics {

/// How many predictions equal their labels, element by element.
[[nodiscard]] Metric accuracy(const std::string& name = "accuracy");

/// How many predictions lie on the label's side of the threshold: above it for 1, otherwise for 0.
[[nodiscard]] Metric binary_accuracy(double threshold = 0.5, const std::string& name = "binary_accuracy");

/// How often the largest prediction of a row is where the label's largest element is; the first of several.
/// Labels and predictions: [..., classes].
[[nodiscard]] Metric categorical_accuracy(const std::string& name = "categorical_accuracy");

/// The same for labels that are classes from 0, one for each row of predictions.
/// @throws InvalidArgument in update_state for a label that is no class.
[[nodiscard]] Metric sparse_categorical_accuracy(const std::string& name = "sparse_categorical_accuracy");

/// How often fewer than `k` predictions of a row are larger than that of the label's class. Equal ones count
/// in favour of the label.
[[nodiscard]] Metric top_k_categorical_accuracy(int k = 5,
                                                const std::string& name = "top_k_categorical_accuracy");
[[nodiscard]] Metric sparse_top_k_categorical_accuracy(
    int k = 5, const std::string& name = "sparse_top_k_categorical_accuracy");

}  // namespace cohort::metrics
