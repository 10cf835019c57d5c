#include "recorded_fits.h"

#include <functional>
#include <map>
#include <string>

#include <cohort/train/losses/classification_losses.h>
#include <cohort/train/losses/regression_losses.h>

namespace cohort::conformance {
namespace {

Loss loss_of(const Json& input) {
  const std::string text = input.value("loss", "mse");
  if (text.starts_with("MeanAbsoluteError")) return losses::mean_absolute_error();
  if (text.starts_with("Huber")) return losses::huber();
  if (text.starts_with("SparseCategorical"))
    return losses::sparse_categorical_crossentropy({.from_logits = true});
  return losses::mean_squared_error();
}

bool has_classes(const Json& input) { return input.value("loss", "").starts_with("SparseCategorical"); }

/// The weights of the lines, by their formulas.
double weight(const std::string& formula, int i) {
  static const std::map<std::string, std::function<double(int)>> kFormulas{
      {"", [](int) { return 1.0; }},
      {"(i%4)/2", [](int at) { return (at % 4) / 2.0; }},
      {"0 for i<4 else 1", [](int at) { return at < 4 ? 0.0 : 1.0; }},
      {"i%2", [](int at) { return at % 2; }},
      {"i%2+1", [](int at) { return at % 2 + 1; }},
      {"i%3", [](int at) { return at % 3; }}};
  return kFormulas.at(formula)(i);
}

}  // namespace

RecordedModel::RecordedModel(const Tensor& kernel, const Tensor& bias, Loss loss, float l2)
    : kernel_({.name = "kernel", .initial_value = kernel}),
      bias_({.name = "bias", .initial_value = bias}),
      loss_(std::move(loss)),
      l2_(l2) {}

Tensor RecordedModel::outputs_for(const Tensor& inputs) const {
  const auto units = static_cast<std::size_t>(kernel_.shape()[1]);
  const Tensor weights = kernel_.read();
  const auto w = weights.span<float>();
  const Tensor outputs = Tensor::uninitialized({inputs.shape()[0], kernel_.shape()[1]}, DType::kFloat32);
  for (std::size_t i = 0; i < outputs.elements(); ++i) {
    const auto x = inputs.span<float>().subspan(2 * (i / units), 2);
    outputs.span<float>()[i] =
        x[0] * w[i % units] + x[1] * w[units + i % units] + bias_.read().span<float>()[i % units];
  }
  return outputs;
}

Tensor RecordedModel::losses(const Tensor& labels, const Tensor& outputs) const {
  Tensor losses = loss_(labels, outputs);
  if (l2_ == 0) return losses;
  float penalty = 0;
  for (const float w : kernel_.read().span<float>()) penalty += l2_ * w * w;
  for (float& loss : losses.span<float>()) loss += penalty;
  return losses;
}

std::vector<GradientAndVariable> RecordedModel::gradients_for(const Tensor& inputs,
                                                              const Tensor& by_outputs) const {
  const auto units = static_cast<std::size_t>(kernel_.shape()[1]);
  const auto rows = static_cast<float>(inputs.shape()[0]);
  const Tensor by_kernel = Tensor::zeros(kernel_.shape(), DType::kFloat32);
  const Tensor by_bias = Tensor::zeros(bias_.shape(), DType::kFloat32);
  for (std::size_t i = 0; i < by_outputs.elements(); ++i) {
    const float slope = by_outputs.span<float>()[i];
    const auto x = inputs.span<float>().subspan(2 * (i / units), 2);
    for (std::size_t k = 0; k < 2; ++k) by_kernel.span<float>()[k * units + i % units] += slope * x[k];
    by_bias.span<float>()[i % units] += slope;
  }
  const Tensor weights = kernel_.read();
  for (std::size_t i = 0; i < by_kernel.elements(); ++i)
    by_kernel.span<float>()[i] += rows * 2 * l2_ * weights.span<float>()[i];
  return {{by_kernel, kernel_}, {by_bias, bias_}};
}

RecordedModel model_of(const Json& input) {
  const bool has_penalty = input.value("model", "").find("L2") != std::string::npos;
  if (has_classes(input))
    return {Tensor::from(std::vector<float>{0.1F, 0.2F, -0.3F, 0.4F, -0.5F, 0.6F}, {2, 3}),
            Tensor::from({0.0F, 0.1F, -0.1F}), loss_of(input), 0};
  return {Tensor::from(std::vector<float>{0.5F, -0.25F}, {2, 1}), Tensor::from({0.1F}), loss_of(input),
          has_penalty ? 0.1F : 0};
}

Examples examples_of(const Json& input, int count) {
  std::vector<float> x;
  std::vector<float> y;
  std::vector<std::int32_t> classes;
  for (int i = 0; i < count; ++i) {
    const float a = static_cast<float>((i * 3) % 7) / 4 - 0.5F;
    const float b = static_cast<float>((i * 5) % 11) / 8 - 0.5F;
    x.insert(x.end(), {a, b});
    y.push_back(2 * a - b + 0.5F + static_cast<float>(i % 3 - 1) / 10);
    classes.push_back((2 * i + i / 3) % 3);
  }
  return {Tensor::from(x, {count, 2}),
          has_classes(input) ? Tensor::from(classes) : Tensor::from(y, {count, 1})};
}

WeightedExamples weighted_examples_of(const Json& input, int count, const std::string& weights) {
  const auto [inputs, labels] = examples_of(input, count);
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(weight(weights, i)));
  return {inputs, labels, Tensor::from(values)};
}

}  // namespace cohort::conformance
