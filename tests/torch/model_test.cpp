// A module of libtorch under a Trainer comes to the numbers of the recorded lines, as a model by hand does.
#include <cohort/torch/model.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/trainer/trainer.h>

#include "../strategy/strategies.h"
#include "../trainer/linear_model.h"

namespace cohort::libtorch {
namespace {

using cohort::testing::linear_batches;
using cohort::testing::linear_examples;
using cohort::testing::message_of;
using cohort::testing::mirrored;
using cohort::testing::numbers;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Numbers = std::vector<double>;

torch::nn::Linear linear() {
  torch::nn::Linear net(2, 1);
  const torch::NoGradGuard no_gradients;
  net->weight.copy_(torch::tensor({{0.5F, -0.25F}}));
  net->bias.fill_(0.1F);
  return net;
}

at::Tensor squared_errors(const at::Tensor& outputs, const at::Tensor& labels) {
  return (outputs - labels).square().flatten();
}

/// With what differs between training and inference.
torch::nn::Sequential normalizing() {
  torch::manual_seed(4);
  return torch::nn::Sequential(torch::nn::Unflatten(torch::nn::UnflattenOptions(1, {1, 2})),
                               torch::nn::BatchNorm1d(1), torch::nn::Flatten(), torch::nn::Linear(2, 1),
                               torch::nn::Dropout(0.5));
}

class ModelTest : public cohort::testing::WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(ModelTest);

void expect_recorded_numbers(const Strategy& strategy) {
  const auto scope = strategy.scope();
  const torch::nn::Linear net = linear();
  Model model(net, squared_errors);
  Sgd optimizer({.learning_rate = 0.1});
  Trainer trainer(strategy, model, optimizer);
  EXPECT_THAT(trainer.fit(linear_batches(13, 4), {.epochs = 2}).of("loss"),
              Pointwise(DoubleNear(1e-5), Numbers{0.800285339, 0.405724674}));
  EXPECT_THAT(numbers(model.parameters()[0].read()),
              Pointwise(DoubleNear(1e-5), Numbers{1.04083443, -0.24844721}));
  EXPECT_THAT(numbers(to_cohort(net->bias)), Pointwise(DoubleNear(1e-5), Numbers{0.475314349}));
}

TEST_P(ModelTest, FitsToTheRecordedNumbers) { expect_recorded_numbers(strategy_); }

TEST(ModelTest, FitsToTheRecordedNumbersWithOneCopyOfTheParameters) {
  expect_recorded_numbers(CentralStorageStrategy(cpu_devices(3), Device()));
}

TEST_P(ModelTest, WeighsExamplesByTheirClass) {
  const auto scope = strategy_.scope();
  const auto train = [&](double learning_rate, const std::map<std::int64_t, double>& class_weight) {
    const torch::nn::Linear net = linear();
    Model model(net, [](const at::Tensor& outputs, const at::Tensor& labels) {
      return (outputs.flatten() - labels).square();
    });
    Sgd optimizer({.learning_rate = learning_rate});
    const Tensor classes = Tensor::from({0, 1, 1, 0, 1});
    const auto batches =
        Dataset<std::pair<Tensor, Tensor>>::from_tensor_slices({linear_examples(5).first, classes});
    Trainer(strategy_, model, optimizer).fit(batches.batch(5), {.class_weight = class_weight});
    return numbers(to_cohort(net->weight));
  };
  // Twice the weight is twice the step.
  EXPECT_THAT(train(0.1, {{0, 2}, {1, 2}}), Pointwise(DoubleNear(1e-6), train(0.2, {})));
}

TEST_P(ModelTest, BuffersAreOfEachReplicaAndTheMeanOutside) {
  const auto scope = strategy_.scope();
  torch::nn::Sequential net = normalizing();
  Model model(net, squared_errors);
  Sgd optimizer({.learning_rate = 0.1});
  Trainer trainer(strategy_, model, optimizer);
  trainer.fit(linear_batches(2 * replicas(), 2 * replicas()), {.epochs = 1});
  // Momentum 0.1 of the statistics of two examples on each replica.
  const auto inputs = to_torch(linear_examples(2 * replicas()).first);
  const Variable running_mean = model.parameters()[4];
  EXPECT_EQ(running_mean.name(), "1.running_mean");
  EXPECT_FALSE(running_mean.trainable());
  EXPECT_THAT(numbers(running_mean.read()),
              Pointwise(DoubleNear(1e-6), numbers(to_cohort((0.1 * inputs.mean()).reshape({1})))));
  EXPECT_THAT(numbers(model.parameters()[6].read()), ::testing::ElementsAre(1.0));
}

TEST_P(ModelTest, EvaluatesInEvaluationMode) {
  const auto scope = strategy_.scope();
  torch::nn::Sequential net = normalizing();
  Model model(net, squared_errors);
  Sgd optimizer({.learning_rate = 0.1});
  Trainer trainer(strategy_, model, optimizer);
  const auto inputs = to_torch(linear_examples(9).first);
  net->eval();
  const auto expected = numbers(to_cohort(net->forward(inputs).detach()));
  EXPECT_THAT(numbers(trainer.predict(linear_batches(9, 4))), Pointwise(DoubleNear(1e-6), expected));
  EXPECT_EQ(numbers(model.parameters()[6].read()), Numbers{0});  // no batch was counted
}

/// Cannot be trained on nothing, as normalization cannot.
struct NeedsRowsImpl : torch::nn::Cloneable<NeedsRowsImpl> {
  NeedsRowsImpl() { reset(); }
  void reset() override { linear = register_module("linear", torch::nn::Linear(2, 1)); }
  torch::Tensor forward(const torch::Tensor& inputs) {
    if (is_training() && inputs.size(0) == 0) throw std::runtime_error("no rows");
    return linear(inputs);
  }
  torch::nn::Linear linear = nullptr;
};
TORCH_MODULE(NeedsRows);

TEST_P(ModelTest, ReplicasWithoutExamplesAreNotTrained) {
  const auto scope = strategy_.scope();
  Model model(NeedsRows(), squared_errors);
  Sgd optimizer({.learning_rate = 0.1});
  EXPECT_NO_THROW(Trainer(strategy_, model, optimizer).fit(linear_batches(1, 1), {}));
  EXPECT_EQ(optimizer.iterations(), 1);
}

/// One matrix for two uses: as one parameter, as a parameter with two names, or as two that share memory.
enum class Tie { kNone, kSameTensor, kSameMemory };

struct TiedImpl : torch::nn::Cloneable<TiedImpl> {
  explicit TiedImpl(Tie how) : tie(how) { reset(); }
  void reset() override {
    first = register_module("first", torch::nn::Linear(torch::nn::LinearOptions(2, 2).bias(false)));
    const torch::NoGradGuard no_gradients;
    first->weight.copy_(torch::tensor({{0.5F, -0.25F}, {0.125F, 1.0F}}));
    if (tie == Tie::kSameTensor) head = register_parameter("head", first->weight);
    if (tie == Tie::kSameMemory) head = register_parameter("head", first->weight.detach());
  }
  torch::Tensor forward(const torch::Tensor& inputs) {
    return torch::matmul(first(inputs), tie == Tie::kNone ? first->weight : head).sum(1, true);
  }
  Tie tie;
  torch::nn::Linear first = nullptr;
  torch::Tensor head;
};
TORCH_MODULE(Tied);

/// The matrix after three clipped steps of Adam, in which norms, slots and averages count.
Numbers trained(const Strategy& strategy, Tie tie) {
  const auto scope = strategy.scope();
  const Tied net(tie);
  Model model(net, squared_errors);
  Adam optimizer({.learning_rate = 0.1});
  optimizer.set_update_options({.weight_decay = 0.01, .clip = {.global_norm = 0.05}});
  Trainer(strategy, model, optimizer).fit(linear_batches(12, 12), {.epochs = 3});
  EXPECT_EQ(model.parameters().size(), 1U);
  if (tie != Tie::kNone) {
    EXPECT_TRUE(torch::equal(net->head, net->first->weight));
  }
  return numbers(model.parameters()[0].read());
}

TEST_P(ModelTest, ATensorWithTwoNamesIsOneVariable) {
  const Numbers expected = trained(strategy_, Tie::kNone);
  EXPECT_THAT(trained(strategy_, Tie::kSameTensor), Pointwise(DoubleNear(1e-6), expected));
  EXPECT_THAT(trained(strategy_, Tie::kSameMemory), Pointwise(DoubleNear(1e-6), expected));
}

TEST_P(ModelTest, AVariableKeepsAllNames) {
  const auto scope = strategy_.scope();
  for (const Tie tie : {Tie::kSameTensor, Tie::kSameMemory}) {
    const Tied net(tie);
    const Model model(net, squared_errors);
    ASSERT_EQ(model.names().size(), 1U);
    EXPECT_THAT(model.names()[0], ::testing::ElementsAre("head", "first.weight"));
    EXPECT_EQ(model.parameters()[0].name(), "head");
  }
}

struct TransposedImpl : torch::nn::Module {
  TransposedImpl() {
    weight = register_parameter("weight", torch::ones({2, 2}));
    transposed = register_parameter("transposed", weight.detach().t());
  }
  torch::Tensor forward(const torch::Tensor& inputs) { return inputs.matmul(weight).matmul(transposed); }
  torch::Tensor weight;
  torch::Tensor transposed;
};
TORCH_MODULE(Transposed);

TEST(ModelTest, RefusesTensorsThatShareMemoryInAnotherOrder) {
  const std::string message =
      message_of(ErrorCode::kInvalidArgument, [] { const Model model(Transposed(), squared_errors); });
  EXPECT_THAT(message, HasSubstr("'weight' and 'transposed'"));
}

/// Parts of one buffer, as a recurrent layer keeps its weights on GPUs.
struct FlatImpl : torch::nn::Module {
  FlatImpl() {
    const torch::Tensor flat = torch::arange(4, torch::kFloat32);
    first = register_parameter("first", flat.narrow(0, 0, 2));
    second = register_parameter("second", flat.narrow(0, 2, 2));
  }
  torch::Tensor forward(const torch::Tensor& inputs) { return (inputs * (first + second)).sum(1, true); }
  torch::Tensor first;
  torch::Tensor second;
};
TORCH_MODULE(Flat);

TEST(ModelTest, PartsOfOneBufferAreVariablesOfTheirOwn) {
  const MirroredStrategy strategy = mirrored(1);
  const auto scope = strategy.scope();
  const Model model(Flat(), squared_errors);
  ASSERT_EQ(model.parameters().size(), 2U);
  EXPECT_THAT(numbers(model.parameters()[1].read()), ::testing::ElementsAre(2, 3));
}

TEST(ModelTest, RefusesALossThatIsNotOfEachExample) {
  const MirroredStrategy strategy = mirrored(1);
  const auto scope = strategy.scope();
  Model model(linear(), [](const at::Tensor& outputs, const at::Tensor& labels) {
    return squared_errors(outputs, labels).mean();
  });
  Sgd optimizer({.learning_rate = 0.1});
  Trainer trainer(strategy, model, optimizer);
  const std::string message =
      message_of(ErrorCode::kInvalidArgument, [&] { trainer.fit(linear_batches(4, 4), {}); });
  EXPECT_THAT(message, HasSubstr("returned float32[] for 4 examples"));
}

struct Uncloneable : torch::nn::Module {
  Uncloneable() : weight(register_parameter("weight", torch::ones({2}))) {}
  torch::Tensor forward(const torch::Tensor& inputs) { return inputs.mv(weight); }
  torch::Tensor weight;
};

TEST(ModelTest, SeveralReplicasNeedAModuleThatCanBeCloned) {
  const MirroredStrategy strategy = mirrored(2);
  const auto scope = strategy.scope();
  const std::string message = message_of(ErrorCode::kInvalidArgument, [] {
    const Model model(std::make_shared<Uncloneable>(), squared_errors);
  });
  EXPECT_THAT(message, HasSubstr("derive it from torch::nn::Cloneable"));
}

TEST(ModelTest, RefusesAModuleWithoutParameters) {
  const std::string message = message_of(ErrorCode::kInvalidArgument, [] {
    const Model model(torch::nn::Sequential(torch::nn::ReLU()), squared_errors);
  });
  EXPECT_THAT(message, HasSubstr("has no parameters"));
}

}  // namespace
}  // namespace cohort::libtorch
