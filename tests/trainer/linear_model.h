// y = x.w + b with mean squared error, and the examples of the recorded lines of `fit`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <cohort/input/dataset.h>
#include <cohort/train/optimizers/optimizer.h>
#include <cohort/value/variable.h>

namespace cohort::testing {

class LinearModel {
 public:
  using Batch = std::pair<Tensor, Tensor>;  ///< [rows, 2] and [rows, 1]

  LinearModel()
      : weights_({.name = "weights", .initial_value = Tensor::from(std::array{0.5F, -0.25F}, {2, 1})}),
        bias_({.name = "bias", .initial_value = Tensor::from({0.1F})}) {}

  [[nodiscard]] std::array<Variable, 2> parameters() const { return {weights_, bias_}; }

  template <class AnyBatch>
  [[nodiscard]] Tensor forward(const AnyBatch& batch) const {
    const Tensor& inputs = std::get<0>(batch);
    const auto x = inputs.span<float>();
    const auto w = weights_.read().span<float>();
    const float b = bias_.read().span<float>()[0];
    Tensor outputs = Tensor::uninitialized({inputs.shape()[0], 1}, DType::kFloat32);
    for (std::size_t i = 0; i < outputs.elements(); ++i)
      outputs.span<float>()[i] = x[2 * i] * w[0] + x[2 * i + 1] * w[1] + b;
    return outputs;
  }

  template <class AnyBatch>
  [[nodiscard]] Tensor loss(const AnyBatch& batch, const Tensor& outputs) const {
    const auto labels = std::get<1>(batch).template span<float>();
    Tensor losses = Tensor::uninitialized({outputs.shape()[0]}, DType::kFloat32);
    for (std::size_t i = 0; i < losses.elements(); ++i) {
      const float error = outputs.span<float>()[i] - labels[i];
      losses.span<float>()[i] = error * error;
    }
    return losses;
  }

  template <class AnyBatch>
  [[nodiscard]] std::vector<GradientAndVariable> gradients(const AnyBatch& batch, const Tensor& outputs,
                                                           const std::optional<Tensor>& weights) const {
    const auto x = std::get<0>(batch).template span<float>();
    const auto labels = std::get<1>(batch).template span<float>();
    const Tensor of_weights = Tensor::zeros({2, 1}, DType::kFloat32);
    const Tensor of_bias = Tensor::zeros({1}, DType::kFloat32);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const float factor =
          2 * (outputs.span<float>()[i] - labels[i]) * (weights ? weights->span<float>()[i] : 1);
      of_weights.span<float>()[0] += factor * x[2 * i];
      of_weights.span<float>()[1] += factor * x[2 * i + 1];
      of_bias.span<float>()[0] += factor;
    }
    return {{of_weights, weights_}, {of_bias, bias_}};
  }

 private:
  Variable weights_;
  Variable bias_;
};

/// The first `count` examples.
inline LinearModel::Batch linear_examples(int count) {
  std::vector<float> x;
  std::vector<float> y;
  for (int i = 0; i < count; ++i) {
    const float a = static_cast<float>((i * 3) % 7) / 4 - 0.5F;
    const float b = static_cast<float>((i * 5) % 11) / 8 - 0.5F;
    x.insert(x.end(), {a, b});
    y.push_back(2 * a - b + 0.5F + static_cast<float>(i % 3 - 1) / 10);
  }
  return {Tensor::from(x, {count, 2}), Tensor::from(y, {count, 1})};
}

inline Dataset<LinearModel::Batch> linear_batches(int count, int batch) {
  return Dataset<LinearModel::Batch>::from_tensor_slices(linear_examples(count)).batch(batch);
}

}  // namespace cohort::testing
