// After the first one a training step asks for no memory, and a reduction outside replicas for
// little: every `new` of this program is counted, on all threads.
#include <algorithm>
#include <limits>

#include <gmock/gmock.h>

#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/train/optimizers/sharded_optimizer.h>

#include "../../../benchmarks/dispatch/allocations.h"
#include "../../strategy/strategies.h"

namespace cohort::testing {
namespace {

/// What ten steps ask for after the first one. A replica whose wait is long, since the cores had other work,
/// puts its call into words, so it is the least of a few tries where there was something.
template <class Step>
std::size_t after_first_step(Step step) {
  step();
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (int tries = 0; tries < 5 && least > 0; ++tries) {
    const std::size_t before = bench::allocations();
    for (int i = 0; i < 10; ++i) step();
    least = std::min(least, bench::allocations() - before);
  }
  return least;
}

TEST(StepAllocations, NoneForARunOnOneDevice) {
  const OneDeviceStrategy strategy(Device::cpu(0));
  int runs = 0;
  EXPECT_EQ(after_first_step([&] { strategy.run([&] { ++runs; }); }), 0U);
  EXPECT_EQ(runs, 11);
}

class StepAllocations : public WithReplicas {
 protected:
  StepAllocations() {
    const auto scope = strategy_.scope();
    for (int i = 0; i < 161; ++i) variables_.emplace_back(VariableOptions{.shape = {i % 7 + 1, 5}});
    gradients_ = per_replica(strategy_, [&](int id) {
      std::vector<GradientAndVariable> pairs;
      for (const Variable& variable : variables_)
        pairs.push_back({Tensor::full(variable.shape(), DType::kFloat32, id), variable});
      return pairs;
    });
  }

  /// What ten steps after the first one ask for.
  std::size_t steps_with(Optimizer& optimizer, GradientAggregation aggregation) {
    return after_first_step([&] {
      strategy_.run([&](ReplicaContext& replica) {
        const auto own = static_cast<std::size_t>(replica.replica_id_in_sync_group());
        optimizer.apply_gradients(gradients_[own], {.aggregation = aggregation});
      });
    });
  }

  std::vector<Variable> variables_;
  PerReplica<std::vector<GradientAndVariable>> gradients_;
};
COHORT_INSTANTIATE_REPLICAS(StepAllocations);

TEST_P(StepAllocations, NoneForAnEmptyRun) {
  EXPECT_EQ(after_first_step([&] { strategy_.run([] {}); }), 0U);
}

TEST_P(StepAllocations, NoneForGradientsSummedInPlace) {
  Sgd sgd;
  EXPECT_EQ(steps_with(sgd, GradientAggregation::kSumInPlace), 0U);
  Momentum momentum;
  EXPECT_EQ(steps_with(momentum, GradientAggregation::kSumInPlace), 0U);
}

TEST_P(StepAllocations, NoneForGradientsThatAreEqualAlready) {
  Adam adam;
  EXPECT_EQ(steps_with(adam, GradientAggregation::kNone), 0U);
}

TEST_P(StepAllocations, NoneForShares) {
  for (const auto aggregation :
       {GradientAggregation::kSum, GradientAggregation::kSumInPlace, GradientAggregation::kNone}) {
    ShardedOptimizer sharded(std::make_unique<Adam>());
    EXPECT_EQ(steps_with(sharded, aggregation), 0U);
  }
}

TEST_P(StepAllocations, NoneForUpdateOptions) {
  const LossScaleOptions scale{.first = 2, .steps_to_double = 2};
  for (const UpdateOptions& options :
       {UpdateOptions{.weight_decay = 0.1}, UpdateOptions{.clip = {.value = 1}},
        UpdateOptions{.clip = {.norm = 1}}, UpdateOptions{.clip = {.global_norm = 1}},
        UpdateOptions{.clip = {.norm = 1, .each_replica = true}}, UpdateOptions{.loss_scale = scale},
        UpdateOptions{.average = AverageOptions{.overwrite_every = 2}},
        UpdateOptions{.float32_masters = true}}) {
    Adam adam;
    adam.set_update_options(options);
    EXPECT_EQ(steps_with(adam, GradientAggregation::kSumInPlace), 0U);
    ShardedOptimizer sharded(std::make_unique<Adam>());
    sharded.set_update_options(options);
    EXPECT_EQ(steps_with(sharded, GradientAggregation::kSumInPlace), 0U);
  }
}

TEST_P(StepAllocations, NoneForAccumulation) {
  Adam adam;
  adam.set_update_options({.accumulation_steps = 2});
  const auto two_calls = [&] {
    for (int call = 0; call < 2; ++call) {
      strategy_.run([&](ReplicaContext& replica) {
        adam.apply_gradients(gradients_[static_cast<std::size_t>(replica.replica_id_in_sync_group())],
                             {.aggregation = GradientAggregation::kSumInPlace});
      });
    }
  };
  EXPECT_EQ(after_first_step(two_calls), 0U);
}

TEST_P(StepAllocations, NoneForReadingVariables) {
  EXPECT_EQ(after_first_step([&] {
              strategy_.run([&] {
                for (const Variable& variable : variables_) EXPECT_EQ(variable.read().elements() % 5, 0U);
              });
            }),
            0U);
}

// Lists of what is reduced, and the result; docs/benchmarks/costs.md has what that costs.
TEST_P(StepAllocations, FewForAReductionOfATensor) {
  const auto ones = per_replica(strategy_, [](int) { return Tensor::scalar(1.0F); });
  const std::size_t asked = after_first_step([&] { static_cast<void>(strategy_.reduce("sum", ones)); });
  const int few = replicas() == 1 ? 18 : 22 + replicas();
  EXPECT_LE(asked, 10 * static_cast<std::size_t>(few));
}

}  // namespace
}  // namespace cohort::testing
