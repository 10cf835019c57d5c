#include <cohort/train/optimizers/sgd.h>

#include <limits>

#include <gmock/gmock.h>

#include <cohort/collective/gradient_buckets.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../../strategy/fake_cluster.h"
#include "../../strategy/strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr DType kFloatingDTypes[] = {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};

Variable variable_of(const Tensor& initial_value, const char* name = "weights") {
  return Variable({.name = name, .initial_value = initial_value});
}

TEST(Sgd, SubtractsTheGradientTimesTheLearningRate) {
  for (const DType dtype : kFloatingDTypes) {
    const Variable weights = variable_of(vector_of<double>({1, 2, -3}).cast(dtype));
    Sgd({.learning_rate = 0.5}).apply_gradients({{vector_of<double>({1, -2, 0.5}).cast(dtype), weights}});
    EXPECT_THAT(numbers(weights.read()), ElementsAre(0.5, 3, -3.25)) << to_string(dtype);
  }
}

TEST(Sgd, ComputesSixteenBitUpdatesInFloat32) {
  // 0.1 is not a float16: with the rate rounded first, the result would be another one.
  const Variable half = variable_of(Tensor::scalar(float16(1)));
  Sgd({.learning_rate = 0.1}).apply_gradients({{Tensor::scalar(float16(3)), half}});
  EXPECT_EQ(half.read().span<float16>()[0].bits(), float16(1.0f - 0.1f * 3.0f).bits());
}

TEST(Sgd, ComputesFloat64UpdatesInFloat64) {
  const Variable wide = variable_of(Tensor::scalar(1.0));
  Sgd({.learning_rate = 0.1}).apply_gradients({{Tensor::scalar(1e-12), wide}});
  EXPECT_EQ(wide.read().item<double>(), 1.0 - 0.1 * 1e-12);
}

TEST(Sgd, NeedsAPositiveLearningRate) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const double rate : {0.0, -0.1, kInfinite, -kInfinite, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT([&] { return Sgd({.learning_rate = rate}); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("learning_rate"), HasSubstr("positive"))));
  }
}

TEST(Optimizer, UpdatesManyVariablesOfDifferentDtypes) {
  std::vector<GradientAndVariable> pairs;
  for (const DType dtype : kFloatingDTypes) {
    pairs.push_back({Tensor::full({2, 0, 3}, dtype, 1), variable_of(Tensor::zeros({2, 0, 3}, dtype))});
    pairs.push_back({Tensor::full({5}, dtype, 1), variable_of(Tensor::full({5}, dtype, 4))});
  }
  Sgd({.learning_rate = 1}).apply_gradients(pairs);
  for (const auto& [gradient, variable] : pairs) {
    EXPECT_THAT(numbers(variable.read()), Each(3));
    EXPECT_THAT(numbers(gradient), Each(1)) << "gradients are left alone";
  }
  EXPECT_NO_THROW(Sgd().apply_gradients({}));
}

TEST(Optimizer, NamesTheVariableWhoseGradientDoesNotFit) {
  const Variable weights = variable_of(Tensor::zeros({2, 3}, DType::kFloat32));
  const Variable bias = variable_of(Tensor::zeros({3}, DType::kFloat32), "bias");
  const Tensor fitting = Tensor::full({2, 3}, DType::kFloat32, 1);
  EXPECT_THAT(([&] {
                Sgd().apply_gradients({{fitting, weights}, {fitting, bias}});
              }),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("gradient of variable 'bias' is float32[2, 3]"),
                                                   HasSubstr("the variable is float32[3]"))));
  EXPECT_THAT(numbers(weights.read()), Each(0)) << "nothing was changed";
  EXPECT_THROW(Sgd().apply_gradients({{fitting.cast(DType::kFloat64), weights}}), InvalidArgument);
}

TEST(Optimizer, TellsTheOtherReplicasWhoseGradientDoesNotFit) {
  const MirroredStrategy strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable weights = variable_of(Tensor::zeros({2}, DType::kFloat32));
  Sgd sgd;
  strategy.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const auto apply = [&] { sgd.apply_gradients({{Tensor::zeros({2 + id}, DType::kFloat32), weights}}); };
    if (id == 1) {
      EXPECT_THROW(apply(), InvalidArgument);
    } else {
      EXPECT_THAT(apply, ThrowsMessage<Aborted>(
                             AllOf(ContainsRegex("replica 1 \\(worker 0, host .*, cpu:1\\) failed first"),
                                   HasSubstr("float32[3]"))));
    }
  });
}

TEST(Optimizer, UpdatesOnlyFloatingVariables) {
  const Variable counter = variable_of(Tensor::scalar(1), "counter");
  EXPECT_THAT(([&] {
                Sgd().apply_gradients({{Tensor::scalar(1), counter}});
              }),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("'counter' is int32"), HasSubstr("floating"))));
}

class OptimizerOfReplicas : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(OptimizerOfReplicas);

TEST_P(OptimizerOfReplicas, SumsTheGradientsAndKeepsTheComponentsEqual) {
  const auto scope = strategy_.scope();
  const Variable weights = variable_of(Tensor::from({10.0f, 20.0f}));
  const Variable bias = variable_of(Tensor::scalar(0.0));
  Sgd optimizer({.learning_rate = 0.5});
  for (int step = 0; step < 3; ++step) {
    strategy_.run([&](ReplicaContext& replica) {
      const double mine = replica.replica_id_in_sync_group() + 1;
      optimizer.apply_gradients(
          {{Tensor::full({2}, DType::kFloat32, mine), weights}, {Tensor::scalar(mine), bias}});
    });
  }
  const double moved = 3 * 0.5 * sum_to(replicas());
  for (const Tensor& component : weights.components()) {
    EXPECT_THAT(numbers(component), ElementsAre(10 - moved, 20 - moved));
  }
  for (const Tensor& component : bias.components()) EXPECT_THAT(numbers(component), ElementsAre(-moved));
}

// Gradients of one shape would be summed whichever variables they are of.
TEST_P(OptimizerOfReplicas, RefusesOtherVariablesThanThoseOfTheOthers) {
  if (replicas() == 1) return;
  const auto scope = strategy_.scope();
  const Variable weights = variable_of(Tensor::scalar(0.0), "weights");
  const Variable bias = variable_of(Tensor::scalar(0.0), "bias");
  for (const auto aggregation : {GradientAggregation::kSum, GradientAggregation::kSumInPlace}) {
    EXPECT_THAT(([&] {
                  strategy_.run([&](ReplicaContext& replica) {
                    const bool swapped = replica.replica_id_in_sync_group() == last();
                    Sgd().apply_gradients({{Tensor::scalar(1.0), swapped ? bias : weights},
                                           {Tensor::scalar(2.0), swapped ? weights : bias}},
                                          {.aggregation = aggregation});
                  });
                }),
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("applies gradients of weights, bias"),
                                                     HasSubstr("applies gradients of bias, weights"))));
  }
  for (const Variable& variable : {weights, bias})
    for (const Tensor& component : variable.components()) EXPECT_EQ(component.item<double>(), 0);
}

TEST_P(OptimizerOfReplicas, SumsInTheGradientsThemselvesIfAskedTo) {
  const auto scope = strategy_.scope();
  const Variable weights = variable_of(Tensor::from({10.0f, 20.0f}));
  const auto gradients = strategy_.run([&](ReplicaContext& replica) {
    Tensor gradient = Tensor::full({2}, DType::kFloat32, replica.replica_id_in_sync_group() + 1);
    Sgd({.learning_rate = 0.5})
        .apply_gradients({{gradient, weights}}, {.aggregation = GradientAggregation::kSumInPlace});
    return gradient;
  });
  const double sum = sum_to(replicas());
  for (const Tensor& gradient : gradients.components()) EXPECT_THAT(numbers(gradient), Each(sum));
  for (const Tensor& component : weights.components())
    EXPECT_THAT(numbers(component), ElementsAre(10 - sum / 2, 20 - sum / 2));
}

// Replica r has r examples of slope 1, 2, ..., so that the first has none.
TEST_P(OptimizerOfReplicas, AppliesTheMeanOverTheExamplesOfAllReplicas) {
  for (const auto aggregation : {GradientAggregation::kSum, GradientAggregation::kSumInPlace}) {
    for (const DType dtype : {DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
      const auto scope = strategy_.scope();
      const Variable weights = variable_of(Tensor::full({2}, dtype, 1));
      Sgd optimizer({.learning_rate = 0.5});
      strategy_.run([&](ReplicaContext& replica) {
        const int examples = replica.replica_id_in_sync_group() + (replicas() == 1 ? 1 : 0);
        const Tensor slope = Tensor::full({2}, dtype, 2 * examples);  // of each example: 2
        optimizer.apply_gradients({{slope, weights}},
                                  {.aggregation = aggregation, .examples = static_cast<double>(examples)});
      });
      for (const Tensor& component : weights.components()) EXPECT_THAT(numbers(component), ElementsAre(0, 0));
      EXPECT_EQ(optimizer.iterations(), 1);
    }
  }
}

TEST_P(OptimizerOfReplicas, MakesNoStepWhereNobodyHasExamples) {
  const auto scope = strategy_.scope();
  const Variable weights = variable_of(Tensor::scalar(1.0f));
  Sgd optimizer;
  strategy_.run([&] { optimizer.apply_gradients({{Tensor::scalar(0.0f), weights}}, {.examples = 0.0}); });
  EXPECT_EQ(weights.read().item<float>(), 1);
  EXPECT_EQ(optimizer.iterations(), 0);
}

TEST_P(OptimizerOfReplicas, FollowsASchedule) {
  const auto scope = strategy_.scope();
  const Variable weights = variable_of(Tensor::scalar(0.0));
  Sgd optimizer({.learning_rate = 1});
  optimizer.set_learning_rate([](std::int64_t step) { return step < 2 ? 0.5 : 0.25; });
  std::vector<double> rates;
  for (int step = 0; step < 4; ++step) {
    rates.push_back(optimizer.learning_rate());
    strategy_.run([&](ReplicaContext& replica) {
      optimizer.apply_gradients({{Tensor::scalar(1.0 / replica.num_replicas_in_sync()), weights}});
    });
  }
  EXPECT_THAT(rates, ElementsAre(0.5, 0.5, 0.25, 0.25));
  for (const Tensor& component : weights.components()) EXPECT_NEAR(component.item<double>(), -1.5, 1e-12);
}

TEST(Optimizer, RefusesRatesAndNumbersOfExamplesThatCannotBe) {
  const Variable weights = variable_of(Tensor::scalar(1.0));
  Sgd optimizer;
  EXPECT_THAT([&] { optimizer.set_learning_rate(-1); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the learning rate is -1")));
  EXPECT_THAT(
      [&] {
        optimizer.apply_gradients({{Tensor::scalar(1.0), weights}}, {.examples = -2.0});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("-2 examples")));
  optimizer.set_learning_rate([](std::int64_t /*step*/) { return std::numeric_limits<double>::infinity(); });
  EXPECT_THAT(
      [&] {
        optimizer.apply_gradients({{Tensor::scalar(1.0), weights}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("the learning rate is inf")));
  EXPECT_EQ(weights.read().item<double>(), 1);
}

TEST_P(OptimizerOfReplicas, TakesTheResultsOfGradientBuckets) {
  const auto scope = strategy_.scope();
  const Variable weights = variable_of(Tensor::from({10.0f, 20.0f}));
  const Variable bias = variable_of(Tensor::scalar(0.0f));
  Sgd optimizer({.learning_rate = 0.5});
  const std::vector<TensorSpec> specs{{bias.shape(), bias.dtype()}, {weights.shape(), weights.dtype()}};
  const auto buckets = strategy_.run([&](ReplicaContext& replica) {
    return std::make_shared<GradientBuckets>(replica.communicator(), specs);
  });
  for (int step = 0; step < 3; ++step) {
    const auto train_step = [&](ReplicaContext& replica, const std::shared_ptr<GradientBuckets>& mine) {
      for (std::size_t i = 0; i < mine->size(); ++i) {
        mine->tensor(i).fill(replica.replica_id_in_sync_group() + 1);
        mine->ready(i);
      }
      mine->wait();
      optimizer.apply_gradients({{mine->result(1), weights}, {mine->result(0), bias}},
                                {.aggregation = GradientAggregation::kNone});
    };
    strategy_.run(train_step, buckets);
  }
  const double moved = 3 * 0.5 * sum_to(replicas());
  for (const Tensor& component : weights.components())
    EXPECT_THAT(numbers(component), ElementsAre(10 - moved, 20 - moved));
  for (const Tensor& component : bias.components()) EXPECT_THAT(numbers(component), ElementsAre(-moved));
}

TEST_P(OptimizerOfReplicas, IsCalledByReplicas) {
  const auto scope = strategy_.scope();
  const Variable weights = variable_of(Tensor::scalar(1.0));
  const auto applying = [&] { Sgd().apply_gradients({{Tensor::scalar(1.0), weights}}); };
  const auto refused = ThrowsMessage<WrongContext>(AllOf(HasSubstr("apply_gradients"), HasSubstr("run()")));
  EXPECT_THAT(applying, refused);
  EXPECT_THAT(
      [&] { strategy_.run([&](ReplicaContext& r) { r.merge_call([&](const Strategy&) { applying(); }); }); },
      refused);
}

TEST_P(OptimizerOfReplicas, DoesNotUpdateMirroredVariablesOutsideAnyScope) {
  const Variable weights = [&] {
    const auto scope = strategy_.scope();
    return variable_of(Tensor::scalar(1.0));
  }();
  EXPECT_THROW(Sgd().apply_gradients({{Tensor::scalar(1.0), weights}}), WrongContext);
  for (const Tensor& component : weights.components()) EXPECT_EQ(component.item<double>(), 1);
}

TEST_P(OptimizerOfReplicas, DoesNotUpdateOnePlainVariableFromSeveralReplicas) {
  const Variable plain = variable_of(Tensor::scalar(1.0));
  const auto step = [&] {
    strategy_.run([&] { Sgd({.learning_rate = 1}).apply_gradients({{Tensor::scalar(1.0), plain}}); });
  };
  if (replicas() == 1) {
    step();
    EXPECT_EQ(plain.read().item<double>(), 0);
  } else {
    EXPECT_THAT(step, ThrowsMessage<WrongContext>(HasSubstr("plain variable 'weights'")));
    EXPECT_EQ(plain.read().item<double>(), 1);
  }
}

TEST(OptimizerOfWorkers, SumsTheGradientsOfAllWorkers) {
  for_each_worker(3, [](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, kPatient);
    const auto scope = strategy.scope();
    const Variable weights = variable_of(Tensor::scalar(10.0 * worker.rank()));
    strategy.run([&] {
      Sgd({.learning_rate = 0.5}).apply_gradients({{Tensor::scalar(worker.rank() + 1.0), weights}});
    });
    EXPECT_EQ(weights.read().item<double>(), -0.5 * sum_to(3)) << "from the chief's 0";
  });
}

}  // namespace
}  // namespace cohort::testing
