// Optimizers beside libtorch's, whose formulas are the same but for where
// epsilon is added: it is too small to show here.
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cohort/train/optimizers/adagrad.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/adam_w.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/rms_prop.h>
#include <cohort/train/optimizers/sgd.h>

namespace cohort::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

constexpr int kElements = 101;
constexpr int kSteps = 20;
constexpr double kEpsilon = 1e-14;

std::vector<double> numbers(double factor, int step) {
  std::vector<double> values;
  for (int i = 0; i < kElements; ++i) values.push_back(factor * std::sin(1 + i + 0.7 * step * (i % 7)));
  return values;
}

std::vector<double> by_cohort(Optimizer& optimizer) {
  const Variable variable({.initial_value = Tensor::from(numbers(1, 0))});
  for (int step = 1; step <= kSteps; ++step)
    optimizer.apply_gradients({{Tensor::from(numbers(3, step)), variable}});
  const Tensor value = variable.read();
  return {value.span<double>().begin(), value.span<double>().end()};
}

using MakeTheirs = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)>;

/// `limit` of the norm of each step's gradients; 0 is none.
std::vector<double> by_torch(const MakeTheirs& make, double limit = 0) {
  torch::Tensor parameter = torch::tensor(numbers(1, 0), torch::kFloat64);
  const auto optimizer = make({parameter});
  for (int step = 1; step <= kSteps; ++step) {
    parameter.mutable_grad() = torch::tensor(numbers(3, step), torch::kFloat64);
    if (limit > 0) torch::nn::utils::clip_grad_norm_(parameter, limit);
    optimizer->step();
  }
  const double* const first = parameter.data_ptr<double>();
  return {first, first + kElements};
}

/// Of options that have been filled in.
template <class Theirs, class Options>
MakeTheirs theirs(const Options& options) {
  return [options](std::vector<torch::Tensor> parameters) {
    return std::make_unique<Theirs>(std::move(parameters), options);
  };
}

void expect_same(Optimizer& optimizer, const MakeTheirs& make) {
  EXPECT_THAT(by_cohort(optimizer), Pointwise(DoubleNear(1e-9), by_torch(make)));
}

TEST(OptimizersBesideTorch, Sgd) {
  for (const double momentum : {0.0, 0.9}) {
    for (const bool nesterov : {false, true}) {
      if (nesterov && momentum == 0) continue;
      Momentum optimizer({.learning_rate = 0.1, .momentum = momentum, .nesterov = nesterov});
      expect_same(optimizer, theirs<torch::optim::SGD>(
                                 torch::optim::SGDOptions(0.1).momentum(momentum).nesterov(nesterov)));
    }
  }
}

TEST(OptimizersBesideTorch, Adam) {
  for (const bool amsgrad : {false, true}) {
    Adam optimizer(
        {.learning_rate = 0.01, .beta_1 = 0.8, .beta_2 = 0.99, .epsilon = kEpsilon, .amsgrad = amsgrad});
    expect_same(optimizer,
                theirs<torch::optim::Adam>(
                    torch::optim::AdamOptions(0.01).betas({0.8, 0.99}).eps(kEpsilon).amsgrad(amsgrad)));
  }
}

TEST(OptimizersBesideTorch, AdamW) {
  AdamW optimizer({.learning_rate = 0.01, .epsilon = kEpsilon, .weight_decay = 0.3});
  const auto options = torch::optim::AdamWOptions(0.01).eps(kEpsilon).weight_decay(0.3);
  expect_same(optimizer, theirs<torch::optim::AdamW>(options));
  Adam with_option({.learning_rate = 0.01, .epsilon = kEpsilon});
  with_option.set_update_options({.weight_decay = 0.3});
  expect_same(with_option, theirs<torch::optim::AdamW>(options));
}

TEST(OptimizersBesideTorch, Adagrad) {
  Adagrad optimizer({.learning_rate = 0.1, .initial_accumulator = 0.2, .epsilon = kEpsilon});
  expect_same(optimizer, theirs<torch::optim::Adagrad>(
                             torch::optim::AdagradOptions(0.1).initial_accumulator_value(0.2).eps(kEpsilon)));
}

TEST(OptimizersBesideTorch, RmsProp) {
  for (const bool centered : {false, true}) {
    for (const double momentum : {0.0, 0.9}) {
      RmsProp optimizer({.learning_rate = 0.01,
                         .rho = 0.8,
                         .momentum = momentum,
                         .epsilon = kEpsilon,
                         .centered = centered});
      const auto options =
          torch::optim::RMSpropOptions(0.01).alpha(0.8).momentum(momentum).centered(centered).eps(kEpsilon);
      expect_same(optimizer, theirs<torch::optim::RMSprop>(options));
    }
  }
}

// libtorch adds 1e-6 to the norm.
TEST(OptimizersBesideTorch, ClippingByNorm) {
  Sgd optimizer({.learning_rate = 0.1});
  optimizer.set_update_options({.clip = {.global_norm = 1.5}});
  const auto make = theirs<torch::optim::SGD>(torch::optim::SGDOptions(0.1));
  EXPECT_THAT(by_cohort(optimizer), Pointwise(DoubleNear(1e-6), by_torch(make, 1.5)));
}

}  // namespace
}  // namespace cohort::testing
