// The model and the examples of the recorded lines of fit.
#pragma once

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <cohort/train/losses/loss.h>
#include <cohort/train/optimizers/optimizer.h>
#include <cohort/value/variable.h>

#include "../record.h"

namespace cohort::conformance {

using Examples = std::pair<Tensor, Tensor>;                   ///< inputs [rows, 2], labels
using WeightedExamples = std::tuple<Tensor, Tensor, Tensor>;  ///< and weights [rows]

/// outputs = x.w + b; `l2` times the squares of w is part of each loss.
class RecordedModel {
 public:
  RecordedModel(const Tensor& kernel, const Tensor& bias, Loss loss, float l2);

  [[nodiscard]] std::vector<Variable> parameters() const { return {kernel_, bias_}; }

  template <class Batch>
  [[nodiscard]] Tensor forward(const Batch& batch) const {
    return outputs_for(std::get<0>(batch));
  }
  template <class Batch>
  [[nodiscard]] Tensor loss(const Batch& batch, const Tensor& outputs) const {
    return losses(std::get<1>(batch), outputs);
  }
  template <class Batch>
  [[nodiscard]] std::vector<GradientAndVariable> gradients(const Batch& batch, const Tensor& outputs,
                                                           const std::optional<Tensor>& weights) const {
    return gradients_for(std::get<0>(batch), loss_.gradients(std::get<1>(batch), outputs, weights));
  }

 private:
  [[nodiscard]] Tensor outputs_for(const Tensor& inputs) const;
  [[nodiscard]] Tensor losses(const Tensor& labels, const Tensor& outputs) const;
  [[nodiscard]] std::vector<GradientAndVariable> gradients_for(const Tensor& inputs,
                                                               const Tensor& by_outputs) const;

  Variable kernel_;
  Variable bias_;
  Loss loss_;
  float l2_;
};

/// The model that a line describes, of the current strategy.
[[nodiscard]] RecordedModel model_of(const Json& input);

/// The first examples of a line's data.
[[nodiscard]] Examples examples_of(const Json& input, int count);

/// The same with `weights`, a formula of the lines; empty: 1 each.
[[nodiscard]] WeightedExamples weighted_examples_of(const Json& input, int count, const std::string& weights);

}  // namespace cohort::conformance
