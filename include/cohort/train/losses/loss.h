// A Loss is a formula that says how wrong predictions are: a number for each example, and the gradient of
// these numbers by the predictions, for backward passes that a program writes itself. A Loss is a handle of
// something that never changes: any thread may use it. `losses::mean_squared_error()` and its neighbours make
// them (regression_losses.h, classification_losses.h).
//
//     const Loss loss = losses::sparse_categorical_crossentropy({.from_logits = true});
//     const Tensor per_example = loss(labels, logits);            // [rows]
//     const Tensor gradient = loss.gradients(labels, logits);     // of their sum, as large as the logits
//
// Predictions are floating and have a row for each example, [..., columns], or [rows] where an example has
// one number. Labels have the same shape, or one class for each row. float32 and float64 are computed in
// their own precision, 16-bit predictions in float32; their losses are float32.
//
// What a batch's losses amount to is up to reduce_losses (loss_reduction.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <cohort/device/tensor.h>

namespace cohort {

/// The formula of a loss.
class LossRule {
 public:
  LossRule() = default;
  virtual ~LossRule() = default;
  LossRule(const LossRule&) = delete;
  LossRule& operator=(const LossRule&) = delete;

  /// A loss for each row of the predictions to `output`, a CPU tensor of float32 or float64.
  virtual void values(const Tensor& labels, const Tensor& predictions, const Tensor& output) const = 0;

  /// d sum_r(weights_r loss_r) / d predictions to `output`, which has the predictions' dtype.
  virtual void gradients(const Tensor& labels, const Tensor& predictions, const Tensor* weights,
                         const Tensor& output) const = 0;
};

class Loss {
 public:
  /// A loss of one's own; the name is for messages and logs.
  Loss(std::string name, std::shared_ptr<const LossRule> rule)
      : name_(std::move(name)), rule_(std::move(rule)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const LossRule& rule() const noexcept { return *rule_; }

  /// The losses of the examples: predictions of [rows, columns] or [rows] have [rows] of them, those of
  /// [rows, steps, columns] have [rows, steps].
  /// @throws InvalidArgument for labels that do not fit the predictions, naming both.
  [[nodiscard]] Tensor operator()(const Tensor& labels, const Tensor& predictions) const;

  /// The same without an allocation: to `output`, which has the shape and dtype of the result.
  void values(const Tensor& labels, const Tensor& predictions, const Tensor& output) const;

  /// The gradient of the sum of the losses by the predictions, in their shape and dtype; with weights, a
  /// number for each row or one for all, that of the weighted sum.
  /// @throws as above; InvalidArgument for weights that do not fit.
  [[nodiscard]] Tensor gradients(const Tensor& labels, const Tensor& predictions,
                                 const std::optional<Tensor>& sample_weight = {}) const;

  /// The same without an allocation: to `output`, which has the shape and dtype of the predictions.
  void write_gradients(const Tensor& labels, const Tensor& predictions,
                       const std::optional<Tensor>& sample_weight, const Tensor& output) const;

 private:
  std::string name_;
  std::shared_ptr<const LossRule> rule_;
};

}  // namespace cohort
