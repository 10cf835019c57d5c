// Metrics of values that a program has already, such as losses: their mean, their sum, and the mean of each
// element of tensors.
#pragma once

#include <optional>
#include <string>

#include <cohort/train/metrics/metric.h>

namespace cohort {

/// sum(weight value) / sum(weight), and 0 before the first value. Values have any shape; a weight is one for
/// each value, one for each row of values, or one for all.
class Mean : public MetricHandle {
 public:
  explicit Mean(std::string name = "mean");

  /// @throws InvalidArgument for weights that do not fit the values.
  void update_state(const Tensor& values, const std::optional<Tensor>& sample_weight = {}) const {
    update({.predictions = values, .weights = sample_weight ? &*sample_weight : nullptr});
  }
  void update_state(double value, double weight = 1) const;
};

/// sum(weight value).
class Sum : public MetricHandle {
 public:
  explicit Sum(std::string name = "sum");

  /// @throws InvalidArgument for weights that do not fit the values.
  void update_state(const Tensor& values, const std::optional<Tensor>& sample_weight = {}) const {
    update({.predictions = values, .weights = sample_weight ? &*sample_weight : nullptr});
  }
};

/// The mean of each element over tensors of one shape; an element without weight is 0.
class MeanTensor : public MetricHandle {
 public:
  explicit MeanTensor(const Shape& shape, std::string name = "mean_tensor");

  /// Weights have the shape of the values, or are one for all.
  /// @throws InvalidArgument for values of another shape, and for weights that do not fit.
  void update_state(const Tensor& values, const std::optional<Tensor>& sample_weight = {}) const {
    update({.predictions = values, .weights = sample_weight ? &*sample_weight : nullptr});
  }
};

}  // namespace cohort
