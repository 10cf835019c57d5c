// Optimizers over single copies: the replicas' gradients are summed, and each step is taken once.
#include <gmock/gmock.h>

#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sgd.h>

#include "../../strategy/strategies.h"

namespace cohort::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class CentralOptimizer : public ::testing::TestWithParam<int> {
 protected:
  static int replicas() { return GetParam(); }

  /// What every replica contributes adds up to this.
  static Tensor gradient(int step) { return Tensor::from({1.0 / step, -2.0, 0.5 * step}); }

  /// The variable after five steps of `optimizer`, with a part of each gradient from every replica.
  Variable trained(Optimizer& optimizer, VariableAggregation variable_aggregation,
                   GradientAggregation aggregation) const {
    const auto scope = strategy_.scope();
    Variable variable({.initial_value = Tensor::from({1.0, 2.0, 3.0}), .aggregation = variable_aggregation});
    for (int step = 1; step <= 5; ++step) {
      strategy_.run([&](ReplicaContext& replica) {
        const double share = (replica.replica_id_in_sync_group() + 1.0) / sum_to(replicas());
        const Tensor own = gradient(step);
        const bool is_equal_already = aggregation == GradientAggregation::kNone;
        for (double& value : own.span<double>()) value *= is_equal_already ? 1 : share;
        optimizer.apply_gradients({{own, variable}}, {.aggregation = aggregation});
      });
    }
    return variable;
  }

  /// The same outside any strategy.
  static std::vector<double> trained_alone(Optimizer& optimizer) {
    const Variable variable({.initial_value = Tensor::from({1.0, 2.0, 3.0})});
    for (int step = 1; step <= 5; ++step) optimizer.apply_gradients({{gradient(step), variable}});
    return numbers(variable.read());
  }

  template <class AnOptimizer>
  void expect_the_steps_of_one_replica() const {
    AnOptimizer alone;
    const std::vector<double> expected = trained_alone(alone);
    for (const auto aggregation :
         {GradientAggregation::kSum, GradientAggregation::kSumInPlace, GradientAggregation::kNone}) {
      AnOptimizer optimizer;
      const Variable variable = trained(optimizer, VariableAggregation::kSum, aggregation);
      EXPECT_THAT(variable.components(), SizeIs(1));
      EXPECT_THAT(numbers(variable.read()), Pointwise(DoubleNear(1e-12), expected));
      EXPECT_EQ(optimizer.iterations(), 5);
    }
  }

  const CentralStorageStrategy strategy_{cpu_devices(GetParam()), Device::cpu(0), kPatient};
};
COHORT_INSTANTIATE_REPLICAS(CentralOptimizer);

TEST_P(CentralOptimizer, SgdTakesEachStepOnce) { expect_the_steps_of_one_replica<Sgd>(); }
TEST_P(CentralOptimizer, MomentumTakesEachStepOnce) { expect_the_steps_of_one_replica<Momentum>(); }
TEST_P(CentralOptimizer, AdamTakesEachStepOnce) { expect_the_steps_of_one_replica<Adam>(); }

TEST_P(CentralOptimizer, NeedsNoAggregationOfTheVariable) {
  Sgd alone;
  const std::vector<double> expected = trained_alone(alone);
  Sgd optimizer;
  const Variable variable = trained(optimizer, VariableAggregation::kNone, GradientAggregation::kSum);
  EXPECT_THAT(numbers(variable.read()), Pointwise(DoubleNear(1e-12), expected));
}

TEST_P(CentralOptimizer, KeepsOneCopyOfEachSlotBesideTheVariable) {
  Adam optimizer;
  const Variable variable = trained(optimizer, VariableAggregation::kSum, GradientAggregation::kSum);
  ASSERT_THAT(optimizer.slots(variable), SizeIs(2));
  for (const Variable& slot : optimizer.slots(variable)) {
    EXPECT_THAT(slot.components(), SizeIs(1));
    EXPECT_EQ(slot.components()[0].device(), Device::cpu(0));
    EXPECT_TRUE(strategy_.extended().variable_created_in_scope(slot));
  }
}

TEST_P(CentralOptimizer, UpdatesSeveralVariablesInOneStep) {
  const auto scope = strategy_.scope();
  const Variable first({.shape = {2}});
  const Variable second({.shape = {3}});
  Sgd optimizer({.learning_rate = 1});
  strategy_.run([&] {
    optimizer.apply_gradients(
        {{Tensor::full({2}, DType::kFloat32, 1), first}, {Tensor::full({3}, DType::kFloat32, 2), second}});
  });
  EXPECT_THAT(numbers(first.read()), Each(-replicas()));
  EXPECT_THAT(numbers(second.read()), Each(-2 * replicas()));
}

TEST_P(CentralOptimizer, RefusesOtherVariablesThanThoseOfTheOthers) {
  if (replicas() == 1) return;
  const auto scope = strategy_.scope();
  const Variable first({.shape = {2}});
  const Variable second({.shape = {2}});
  EXPECT_THAT(([&] {
                strategy_.run([&](ReplicaContext& replica) {
                  const Variable& own = replica.replica_id_in_sync_group() == 0 ? first : second;
                  Sgd().apply_gradients({{Tensor::full({2}, DType::kFloat32, 1), own}});
                });
              }),
              ThrowsMessage<InvalidArgument>(HasSubstr("applies gradients of variable (variables number 2")));
  EXPECT_THAT(numbers(first.read()), Each(0));
}

}  // namespace
}  // namespace cohort::testing
