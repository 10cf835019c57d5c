#include "mlp.h"

#include <cmath>
#include <random>

#include <Eigen/Core>

#include <cohort/eigen/map.h>

#include "initial_weights.h"

namespace digits {
namespace {

using cohort::DType;
using cohort::Tensor;
using cohort::Variable;
using cohort::eigen::as_matrix;
using cohort::eigen::as_vector;
using Matrix = cohort::eigen::RowMajorMatrix<float>;

struct Forward {
  Matrix activations;    ///< [rows, hidden]
  Matrix probabilities;  ///< [rows, 10]
  Score score;
};

Forward forward(const Batch& batch, const Tensor& hidden_weights, const Tensor& hidden_bias,
                const Tensor& output_weights, const Tensor& output_bias) {
  Forward result;
  result.activations = ((as_matrix<float>(batch.images) * as_matrix<float>(hidden_weights)).rowwise() +
                        as_vector<float>(hidden_bias).transpose())
                           .array()
                           .tanh();
  Matrix& logits = result.probabilities;
  logits = (result.activations * as_matrix<float>(output_weights)).rowwise() +
           as_vector<float>(output_bias).transpose();

  const auto labels = batch.labels.span<std::int32_t>();
  result.score.rows = logits.rows();
  for (Eigen::Index row = 0; row < logits.rows(); ++row) {
    Eigen::Index best = 0;
    const float largest = logits.row(row).maxCoeff(&best);
    logits.row(row).array() -= largest;
    const Eigen::Index label = labels[static_cast<std::size_t>(row)];
    const float wanted = logits(row, label);
    logits.row(row) = logits.row(row).array().exp();
    const float sum = logits.row(row).sum();
    logits.row(row) /= sum;
    result.score.loss += std::log(static_cast<double>(sum)) - wanted;
    result.score.correct += best == label ? 1 : 0;
  }
  return result;
}

}  // namespace

Mlp::Mlp(int hidden, std::uint64_t seed) : Mlp(hidden, std::mt19937_64(seed)) {}

Mlp::Mlp(int hidden, std::mt19937_64 random)
    : hidden_weights_({.name = "hidden_weights", .initial_value = initial_weights(kPixels, hidden, random)}),
      hidden_bias_({.shape = {hidden}, .name = "hidden_bias"}),
      output_weights_({.name = "output_weights", .initial_value = initial_weights(hidden, kClasses, random)}),
      output_bias_({.shape = {kClasses}, .name = "output_bias"}) {}

Mlp::Mlp(const std::vector<Variable>& parameters)
    : hidden_weights_(parameters.at(0)),
      hidden_bias_(parameters.at(1)),
      output_weights_(parameters.at(2)),
      output_bias_(parameters.at(3)) {}

Step Mlp::step(const Batch& batch, std::int64_t global_batch) const {
  const Tensor output_weights = output_weights_.read();
  const Forward pass =
      forward(batch, hidden_weights_.read(), hidden_bias_.read(), output_weights, output_bias_.read());

  Matrix logits_gradient = pass.probabilities;
  const auto labels = batch.labels.span<std::int32_t>();
  for (Eigen::Index row = 0; row < logits_gradient.rows(); ++row) {
    logits_gradient(row, labels[static_cast<std::size_t>(row)]) -= 1;
  }
  logits_gradient /= static_cast<float>(global_batch);
  const Matrix hidden_gradient = (logits_gradient * as_matrix<float>(output_weights).transpose()).array() *
                                 (1 - pass.activations.array().square());

  const auto gradient_of = [](const Variable& variable) {
    return cohort::GradientAndVariable{Tensor::uninitialized(variable.shape(), DType::kFloat32), variable};
  };
  Step step{pass.score,
            {gradient_of(hidden_weights_), gradient_of(hidden_bias_), gradient_of(output_weights_),
             gradient_of(output_bias_)}};
  as_matrix<float>(step.gradients[0].gradient) = as_matrix<float>(batch.images).transpose() * hidden_gradient;
  as_vector<float>(step.gradients[1].gradient) = hidden_gradient.colwise().sum().transpose();
  as_matrix<float>(step.gradients[2].gradient) = pass.activations.transpose() * logits_gradient;
  as_vector<float>(step.gradients[3].gradient) = logits_gradient.colwise().sum().transpose();
  return step;
}

Score Mlp::evaluate(const Batch& batch) const {
  return forward(batch, hidden_weights_.read(), hidden_bias_.read(), output_weights_.read(),
                 output_bias_.read())
      .score;
}

}  // namespace digits
