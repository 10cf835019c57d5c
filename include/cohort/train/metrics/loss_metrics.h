// Losses as metrics: their means over all examples, and what else is made of errors of predicted numbers.
#pragma once

#include <string>

#include <cohort/train/losses/loss.h>
#include <cohort/train/metrics/metric.h>

namespace cohort::metrics {

/// The mean of a loss over all examples, weighed by their weights: of any loss, also of one's own.
[[nodiscard]] Metric mean_of(const Loss& loss);
[[nodiscard]] Metric mean_of(const Loss& loss, const std::string& name);

/// The square root of the mean of e^2, where e = prediction - label.
[[nodiscard]] Metric root_mean_squared_error(const std::string& name = "root_mean_squared_error");

/// The mean of |e| / normalizer; 0 for the normalizer 0.
[[nodiscard]] Metric mean_relative_error(double normalizer, const std::string& name = "mean_relative_error");

/// The mean cosine of the angle between rows of labels and of predictions.
[[nodiscard]] Metric cosine_similarity(const std::string& name = "cosine_similarity");

/// The coefficient of determination, 1 - sum e^2 / sum (label - mean label)^2; NaN before the first example,
/// and, with a warning once, of constant labels.
/// Of rows with several columns, as many as `outputs`, the mean of the columns' coefficients. The spread of
/// the labels comes from their sums and their squares' in float64: of labels whose mean is 1e6 times their
/// deviation, four digits are left, and none at 1e8; subtract the mean from such labels and predictions.
/// @throws InvalidArgument for no outputs; in update_state for rows of another length.
[[nodiscard]] Metric r2_score(int outputs = 1, const std::string& name = "r2_score");

}  // namespace cohort::metrics
