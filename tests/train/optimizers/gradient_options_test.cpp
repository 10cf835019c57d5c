// What is done to gradients before the rule of an optimizer: clipping, accumulation, the loss scale.
#include <atomic>
#include <limits>

#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sgd.h>

#include "update_options_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;
using ::testing::ThrowsMessage;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class GradientOptions : public WithOptions {};
COHORT_INSTANTIATE_REPLICAS(GradientOptions);

TEST_P(GradientOptions, ClippingByValueLimitsTheSum) {
  const Variable weights = variable_of(Tensor::from({0.0, 0.0, 0.0}));
  Sgd optimizer({.learning_rate = 1});
  optimizer.set_update_options({.clip = {.value = 0.5}});
  step(optimizer, {weights}, {Tensor::from({3.0, -3.0, 0.25})});
  EXPECT_THAT(values(weights), near({-0.5, 0.5, -0.25}));
}

TEST_P(GradientOptions, ClippingByNormKeepsTheDirectionOfEachVariable) {
  const Variable first = variable_of(Tensor::from({0.0, 0.0}));
  const Variable second = variable_of(Tensor::from({0.0}), "second");
  Sgd optimizer({.learning_rate = 1});
  optimizer.set_update_options({.clip = {.norm = 2}});
  step(optimizer, {first, second}, {Tensor::from({3.0, 4.0}), Tensor::from({1.5})});
  EXPECT_THAT(values(first), near({-1.2, -1.6}));
  EXPECT_THAT(values(second), near({-1.5}));
}

TEST_P(GradientOptions, ClippingByGlobalNormKeepsTheDirectionOfAll) {
  const Variable first = variable_of(Tensor::from({0.0, 0.0}));
  const Variable second = variable_of(Tensor::from({0.0F}), "second");
  Sgd optimizer({.learning_rate = 1});
  optimizer.set_update_options({.clip = {.global_norm = 1.3}});
  step(optimizer, {first, second}, {Tensor::from({3.0, 4.0}), Tensor::from({12.0})});
  EXPECT_THAT(values(first), near({-0.3, -0.4}));
  EXPECT_THAT(values(second), near({-1.2}, 1e-6));
  step(optimizer, {first, second}, {Tensor::from({0.3, 0.4}), Tensor::from({1.0})});
  EXPECT_THAT(values(first), near({-0.6, -0.8})) << "below the limit nothing changes";
}

void expect_nan(const Variable& variable) {
  for (const Tensor& component : variable.components()) EXPECT_THAT(numbers(component), Each(IsNan()));
}

TEST_P(GradientOptions, ANormThatIsNotFiniteMakesAllThatItIsOfNaN) {
  for (const double broken : {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity}) {
    for (const ClipOptions& clip : {ClipOptions{.norm = 1}, ClipOptions{.global_norm = 1}}) {
      for (const std::int64_t calls : {1, 2}) {
        for (const bool each_replica : {false, true}) {
          const Variable first = variable_of(Tensor::from({0.0, 0.0}));
          const Variable second = variable_of(Tensor::from({0.0, 0.0}), "second");
          Sgd optimizer({.learning_rate = 1});
          UpdateOptions options{.clip = clip, .accumulation_steps = calls};
          options.clip.each_replica = each_replica;
          optimizer.set_update_options(options);
          for (std::int64_t call = 0; call < calls; ++call) {
            strategy_.run([&](ReplicaContext& replica) {
              const bool is_first = replica.replica_id_in_sync_group() == 0;
              optimizer.apply_gradients({{Tensor::from({100.0, is_first ? broken : 100.0}), first},
                                         {Tensor::from({100.0, 0.0}), second}});
            });
          }
          expect_nan(first);
          if (clip.global_norm)
            expect_nan(second);
          else
            EXPECT_THAT(values(second), near({each_replica ? -1.0 * replicas() : -1.0, 0}));
        }
      }
    }
  }
}

TEST_P(GradientOptions, ALossScaleMakesNoStepWhereANormIsNotFinite) {
  const Variable weights = variable_of(Tensor::from({0.0, 0.0}));
  Sgd optimizer({.learning_rate = 1});
  optimizer.set_update_options({.clip = {.global_norm = 1}, .loss_scale = LossScaleOptions{.first = 2}});
  step(optimizer, {weights}, {Tensor::from({100.0, kInfinity})});
  EXPECT_THAT(values(weights), Each(0));
  EXPECT_EQ(optimizer.iterations(), 0);
}

TEST_P(GradientOptions, AVariableHasOneGradient) {
  const Variable first = variable_of(Tensor::from({0.0}));
  const Variable second = variable_of(Tensor::from({0.0}), "second");
  Sgd optimizer({.learning_rate = 1});
  const Tensor one = Tensor::from({1.0});
  const auto named_twice = ThrowsMessage<InvalidArgument>(HasSubstr("'second' has two gradients"));
  EXPECT_THAT([&] { step(optimizer, {second, first, second}, {one, one, one}); }, named_twice);
  step(optimizer, {first, second}, {one, one});
  EXPECT_THAT([&] { step(optimizer, {first, second, second}, {one, one, one}); }, named_twice);
  EXPECT_THAT(
      [&] {
        strategy_.run([&] {
          const IndexedSlices row{one, Tensor::from({std::int64_t{0}}), Shape{1}};
          optimizer.apply_sparse_gradients({{row, second}}, {{one, second}});
        });
      },
      named_twice);
  EXPECT_THAT(values(first), near({-1}));
  EXPECT_THAT(values(second), near({-1}));
}

// Of the mean, where examples are given: it does not depend on how many there are.
TEST_P(GradientOptions, ClippingComesAfterTheMean) {
  for (const UpdateOptions& options :
       {UpdateOptions{.clip = {.global_norm = 2.5}}, UpdateOptions{.clip = {.norm = 2.5}}}) {
    const Variable weights = variable_of(Tensor::from({0.0, 0.0}));
    Sgd optimizer({.learning_rate = 1});
    optimizer.set_update_options(options);
    const double examples = 8.0 / replicas();
    step(optimizer, {weights}, {Tensor::from({24.0, 32.0})}, {.examples = examples});
    EXPECT_THAT(values(weights), near({-1.5, -2}, 1e-6));
  }
}

TEST_P(GradientOptions, ClippingEachReplicaComesBeforeTheSum) {
  for (const ClipOptions& clip :
       {ClipOptions{.value = 0.5, .each_replica = true}, ClipOptions{.norm = 0.5, .each_replica = true},
        ClipOptions{.global_norm = 0.5, .each_replica = true}}) {
    const Variable weights = variable_of(Tensor::from({0.0}));
    Sgd optimizer({.learning_rate = 1});
    optimizer.set_update_options({.clip = clip});
    std::vector<double> own(static_cast<std::size_t>(replicas()));
    strategy_.run([&](ReplicaContext& replica) {
      const Tensor gradient = Tensor::from({0.25 * (replica.replica_id_in_sync_group() + 1)});
      optimizer.apply_gradients({{gradient, weights}});
      own[static_cast<std::size_t>(replica.replica_id_in_sync_group())] = gradient.item<double>();
    });
    EXPECT_THAT(values(weights), near({replicas() == 1 ? -0.25 : -0.25 - 0.5 * (replicas() - 1)}));
    EXPECT_EQ(own.back(), 0.25 * replicas()) << "the caller's gradients are left alone";
  }
}

TEST_P(GradientOptions, AccumulationMakesOneStepOfTheMean) {
  for (const auto aggregation :
       {GradientAggregation::kSum, GradientAggregation::kSumInPlace, GradientAggregation::kNone}) {
    const Variable weights = variable_of(Tensor::from({0.0, 0.0}));
    Momentum optimizer({.learning_rate = 1, .momentum = 0.5});
    optimizer.set_update_options({.accumulation_steps = 3});
    const double factor = aggregation == GradientAggregation::kNone ? 1.0 : replicas();
    for (int call = 1; call <= 7; ++call) {
      strategy_.run([&] {
        optimizer.apply_gradients({{Tensor::from({1.0 * call, -2.0}), weights}},
                                  {.aggregation = aggregation});
      });
      EXPECT_EQ(optimizer.iterations(), call / 3);
    }
    // Means 2 and 5; velocities -2 and -6.
    EXPECT_THAT(values(weights), near({-8 * factor, 5 * factor}));
  }
}

TEST_P(GradientOptions, AccumulationOf16BitsIsRoundedOnce) {
  const Variable weights = variable_of(Tensor::zeros({2}, DType::kBFloat16));
  Sgd optimizer({.learning_rate = 1});
  optimizer.set_update_options({.accumulation_steps = 3});
  for (int round = 1; round <= 2; ++round) {
    for (const double gradient : {256.0, 1.0, 1.0}) {  // 256 + 1 is 256 in bfloat16
      strategy_.run([&] {
        optimizer.apply_gradients({{Tensor::full({2}, DType::kBFloat16, gradient), weights}},
                                  {.aggregation = GradientAggregation::kNone});
      });
    }
    EXPECT_EQ(weights.read().row(1).item<double>(), -86 * round);
  }
}

TEST_P(GradientOptions, AccumulationWeighsTheExamplesOfAllCalls) {
  const Variable weights = variable_of(Tensor::from({0.0}));
  Sgd optimizer({.learning_rate = 1});
  optimizer.set_update_options({.accumulation_steps = 2});
  const double part = 1.0 / replicas();
  step(optimizer, {weights}, {Tensor::from({6.0})}, {.examples = 2 * part});
  step(optimizer, {weights}, {Tensor::from({18.0})}, {.examples = 4 * part});
  EXPECT_THAT(values(weights), near({-4}, 1e-6));
}

// The first replica makes all calls but the last before the others begin: with a collective in one of them it
// would wait for them in vain.
TEST_P(GradientOptions, AccumulationCommunicatesOnceForAStep) {
  constexpr int kCalls = 4;
  const Variable weights = variable_of(Tensor::from({0.0}));
  Sgd optimizer({.learning_rate = 1});
  optimizer.set_update_options({.clip = {.global_norm = 100}, .accumulation_steps = kCalls});
  for (int round = 0; round < 2; ++round) {
    std::atomic<bool> is_first_ahead{false};
    strategy_.run([&](ReplicaContext& replica) {
      const bool is_first = replica.replica_id_in_sync_group() == 0;
      if (!is_first) is_first_ahead.wait(false);
      for (int call = 0; call < kCalls; ++call) {
        if (is_first && call == kCalls - 1) {
          is_first_ahead = true;
          is_first_ahead.notify_all();
        }
        optimizer.apply_gradients({{Tensor::from({1.0}), weights}});
      }
    });
  }
  EXPECT_THAT(values(weights), near({-2.0 * replicas()}));
}

TEST_P(GradientOptions, AccumulationHasTheSameVariablesInEveryCall) {
  const Variable first = variable_of(Tensor::from({0.0}));
  const Variable second = variable_of(Tensor::from({0.0}), "second");
  Sgd optimizer;
  optimizer.set_update_options({.accumulation_steps = 2});
  step(optimizer, {first}, {Tensor::from({1.0})});
  EXPECT_THAT([&] { step(optimizer, {second}, {Tensor::from({1.0})}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the same variables in the same order")));
}

/// The scale that each replica sees.
std::vector<double> scales(const Strategy& strategy, const Optimizer& optimizer) {
  const auto seen = strategy.run([&] { return optimizer.loss_scale(); });
  return {seen.components().begin(), seen.components().end()};
}

TEST_P(GradientOptions, AnOverflowOfOneReplicaSkipsTheStepOfAll) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const double overflow : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
      const Variable weights = variable_of(Tensor::from({1.0, 2.0}).cast(dtype));
      Momentum optimizer({.learning_rate = 0.5});
      optimizer.set_update_options({.loss_scale = LossScaleOptions{.first = 8, .steps_to_double = 2}});
      const auto step_of_one = [&](double of_last) {
        strategy_.run([&](ReplicaContext& replica) {
          const bool is_last = replica.replica_id_in_sync_group() == last();
          const double own = optimizer.loss_scale() * (is_last ? of_last : 0);
          optimizer.apply_gradients({{Tensor::full({2}, dtype, own), weights}});
        });
      };
      step_of_one(overflow);
      EXPECT_EQ(optimizer.iterations(), 0);
      EXPECT_THAT(values(weights), ElementsAre(1, 2));
      EXPECT_THAT(scales(strategy_, optimizer), Each(4));
      step_of_one(1);
      EXPECT_EQ(optimizer.iterations(), 1);
      EXPECT_THAT(values(weights), ElementsAre(0.5, 1.5)) << "the scale is divided out";
      EXPECT_THAT(scales(strategy_, optimizer), Each(4));
      step_of_one(0);
      EXPECT_THAT(scales(strategy_, optimizer), Each(8)) << "two steps without overflow";
    }
  }
}

TEST_P(GradientOptions, ASumThatOverflowsSkipsTheStep) {
  if (replicas() == 1) GTEST_SKIP() << "the sum of one gradient does not overflow";
  const Variable weights = variable_of(Tensor::full({2}, DType::kFloat16, 1));
  Sgd optimizer;
  optimizer.set_update_options({.loss_scale = LossScaleOptions{.first = 1024}});
  strategy_.run([&] { optimizer.apply_gradients({{Tensor::full({2}, DType::kFloat16, 60000), weights}}); });
  EXPECT_EQ(optimizer.iterations(), 0);
  EXPECT_THAT(values(weights), Each(1));
  EXPECT_THAT(scales(strategy_, optimizer), Each(512));
}

TEST_P(GradientOptions, TheLossScaleIsAtLeastOne) {
  const Variable weights = variable_of(Tensor::from({1.0F}));
  Sgd optimizer;
  optimizer.set_update_options({.loss_scale = LossScaleOptions{.first = 2}});
  for (int i = 0; i < 3; ++i) step(optimizer, {weights}, {Tensor::from({kInfinity})});
  EXPECT_THAT(scales(strategy_, optimizer), Each(1));
}

}  // namespace
}  // namespace cohort::testing
