#include "network.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>

#include <cohort/torch/tensor.h>

namespace torch_images {
namespace {

using cohort::Tensor;
using cohort::Variable;
using cohort::libtorch::to_cohort;
using cohort::libtorch::to_torch;

constexpr std::int64_t kSide = 8;  ///< pixels of an image's side
constexpr std::int64_t kFirst = 8;
constexpr std::int64_t kSecond = 16;

/// Normal, with a variance that keeps that of the activations [He, Zhang, Ren, Sun 2015].
Variable weights(const char* name, at::IntArrayRef shape, at::Generator& random) {
  const auto inputs = static_cast<double>(c10::multiply_integers(shape.slice(1)));
  return Variable(
      {.name = name, .initial_value = to_cohort(at::randn(shape, random) * std::sqrt(2 / inputs))});
}

Variable bias(const char* name, std::int64_t units) { return Variable({.shape = {units}, .name = name}); }

std::array<Variable, 6> make_parameters(at::Generator random) {
  return {weights("first.weight", {kFirst, 1, 3, 3}, random),
          bias("first.bias", kFirst),
          weights("second.weight", {kSecond, kFirst, 3, 3}, random),
          bias("second.bias", kSecond),
          weights("output.weight", {digits::kClasses, kSecond * kSide / 4 * kSide / 4}, random),
          bias("output.bias", digits::kClasses)};
}

/// Half as wide and high. All of it is smooth: where a ReLU or a maximum has a kink, a rounding decides on
/// which side an activation lies, and so changes the gradient by more than roundings.
at::Tensor convolved(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias) {
  return at::avg_pool2d(at::silu(at::conv2d(images, weight, bias, 1, 1)), 2);
}

}  // namespace

Network::Network(std::uint64_t seed) : parameters_(make_parameters(at::detail::createCPUGenerator(seed))) {}

Network::Forward Network::forward(const Batch& batch) const {
  Forward pass;
  for (const Variable& parameter : parameters_)
    pass.parameters.push_back(to_torch(parameter.read()).requires_grad_());
  const std::vector<at::Tensor>& p = pass.parameters;
  const at::Tensor images = to_torch(batch.images).reshape({-1, 1, kSide, kSide});
  const at::Tensor features = convolved(convolved(images, p[0], p[1]), p[2], p[3]).flatten(1);
  const at::Tensor logits = at::linear(features, p[4], p[5]);
  pass.predictions = to_cohort(logits);
  pass.losses = at::cross_entropy_loss(logits, to_torch(batch.labels).to(at::kLong), {}, at::Reduction::None);
  return pass;
}

Tensor Network::loss(const Batch& /*batch*/, const Forward& forward) { return to_cohort(forward.losses); }

std::vector<cohort::GradientAndVariable> Network::gradients(const Batch& /*batch*/, const Forward& forward,
                                                            const std::optional<Tensor>& weights) const {
  const at::Tensor factors = weights ? to_torch(*weights) : at::ones_like(forward.losses);
  const auto gradients = torch::autograd::grad({forward.losses}, forward.parameters, {factors});
  std::vector<cohort::GradientAndVariable> result;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    result.push_back({to_cohort(gradients[i].contiguous()), parameters_[i]});
  return result;
}

}  // namespace torch_images
