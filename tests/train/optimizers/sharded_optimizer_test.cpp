// Optimizers whose slots are spread over the replicas.
#include <cohort/train/optimizers/sharded_optimizer.h>

#include <gmock/gmock.h>

#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/collective_all_reduce.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/strategy/reduction_to_one_device.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/sgd.h>

#include "../../strategy/fake_cluster.h"
#include "../../strategy/strategies.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Layout {
  int workers;
  int devices;
};

class ShardedOptimizers : public ::testing::TestWithParam<Layout> {
 protected:
  template <class Check>
  static void on_every_worker(Check check) {
    for_each_worker(GetParam().workers, [&](Bootstrap& worker) { check(worker, GetParam().devices); });
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, ShardedOptimizers,
                         ::testing::Values(Layout{1, 1}, Layout{2, 1}, Layout{1, 2}, Layout{3, 1},
                                           Layout{1, 4}, Layout{2, 2}, Layout{7, 1}, Layout{2, 3}),
                         [](const auto& layout) {
                           return std::to_string(layout.param.workers) + "x" +
                                  std::to_string(layout.param.devices);
                         });

TEST_P(ShardedOptimizers, GiveTheBitsOfTheOptimizerAlone) {
  on_every_worker([](Bootstrap& worker, int devices) { check_bits_of_shares(worker, devices, false); });
}
TEST_P(ShardedOptimizers, GiveThemReproduciblyToo) {
  on_every_worker([](Bootstrap& worker, int devices) { check_bits_of_shares(worker, devices, true); });
}
TEST_P(ShardedOptimizers, HaveAllUpdateOptions) { on_every_worker(check_options_of_shares); }
TEST_P(ShardedOptimizers, DivideTheSlots) { on_every_worker(check_slots_of_shares); }
TEST_P(ShardedOptimizers, NameTheOddReplica) { on_every_worker(check_odd_shares); }

std::string refusal_of(ErrorCode code, const Strategy& strategy,
                       const VariableOptions& options = {.shape = {2}, .name = "w"}) {
  const Variable variable = variable_in(strategy, options);
  ShardedOptimizer sharded(std::make_unique<Sgd>());
  return message_of(code, [&] {
    strategy.run([&] { sharded.apply_gradients({{Tensor::zeros({2}, DType::kFloat32), variable}}); });
  });
}

TEST(ShardedOptimizer, RefusesVariablesThatAreNotMirrored) {
  EXPECT_THAT(refusal_of(ErrorCode::kUnimplemented, CentralStorageStrategy(cpu_devices(2))),
              HasSubstr("'w' is kept in one copy under CentralStorageStrategy"));
  EXPECT_THAT(refusal_of(ErrorCode::kInvalidArgument, mirrored(2),
                         {.shape = {2},
                          .name = "w",
                          .synchronization = VariableSynchronization::kOnRead,
                          .aggregation = VariableAggregation::kMean}),
              HasSubstr("'w' is ON_READ"));
  const MirroredStrategy strategy(cpu_devices(2), {}, std::make_shared<ReductionToOneDevice>());
  EXPECT_THAT(refusal_of(ErrorCode::kUnimplemented, strategy), HasSubstr("cross-device operations"));
}

TEST(ShardedOptimizer, WrapsAnOptimizer) {
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [] { ShardedOptimizer(nullptr); }),
              HasSubstr("give it an optimizer"));
  const ShardedOptimizer sharded(std::make_unique<Adam>());
  EXPECT_THAT(sharded.slot_names(), ElementsAre("first_moment", "second_moment"));
}

class ByNorms final : public Optimizer {
 public:
  ByNorms() : Optimizer(0.1) {}
  [[nodiscard]] bool is_elementwise() const noexcept override { return false; }

 private:
  void update(const Tensor& /*variable*/, std::span<const Tensor> /*slots*/, const Tensor& /*gradient*/,
              const StepArguments& /*arguments*/) const override {}
};

TEST(ShardedOptimizer, RefusesAnOptimizerThatNeedsWholeVariables) {
  EXPECT_THAT(message_of(ErrorCode::kUnimplemented, [] { ShardedOptimizer(std::make_unique<ByNorms>()); }),
              HasSubstr("needs whole variables"));
}

TEST(ShardedOptimizer, TakesTheRateThatItsOptimizerHas) {
  auto sgd = std::make_unique<Sgd>(SgdOptions{.learning_rate = 0.5});
  sgd->set_learning_rate([](std::int64_t step) { return 1.0 / static_cast<double>(1 + step); });
  const Variable variable({.initial_value = Tensor::from({0.0F})});
  ShardedOptimizer sharded(std::move(sgd));
  EXPECT_EQ(sharded.learning_rate(), 1);
  for (int step = 0; step < 2; ++step) sharded.apply_gradients({{Tensor::from({-1.0F}), variable}});
  EXPECT_THAT(numbers(variable.read()), ElementsAre(1.5));
  sharded.set_learning_rate(0.25);
  sharded.apply_gradients({{Tensor::from({-1.0F}), variable}});
  EXPECT_THAT(numbers(variable.read()), ElementsAre(1.75));
}

TEST(ShardedOptimizer, MakesNoStepWithoutExamples) {
  const MirroredStrategy strategy = mirrored(2);
  const Variable variable = variable_in(strategy, {.shape = {2}});
  ShardedOptimizer sharded(std::make_unique<Sgd>());
  const auto step = [&](std::vector<double> examples) {
    strategy.run([&](ReplicaContext& replica) {
      const auto own = static_cast<std::size_t>(replica.replica_id_in_sync_group());
      sharded.apply_gradients({{Tensor::from({-100.0F, -200.0F}), variable}}, {.examples = examples[own]});
    });
  };
  step({0, 0});
  EXPECT_EQ(sharded.iterations(), 0);
  EXPECT_THAT(component(variable, 1), ElementsAre(0, 0));
  step({4, 0});
  EXPECT_EQ(sharded.iterations(), 1);
  EXPECT_THAT(component(variable, 1), ElementsAre(DoubleNear(0.5, 1e-6), DoubleNear(1, 1e-6)));
}

TEST(ShardedOptimizer, HasTheVariablesOfItsFirstStep) {
  const MirroredStrategy strategy = mirrored(2);
  const Variable first = variable_in(strategy, {.shape = {2}, .name = "first"});
  const Variable later = variable_in(strategy, {.shape = {2}, .name = "later"});
  ShardedOptimizer sharded(std::make_unique<Sgd>());
  const Tensor gradient = Tensor::from({1.0F, 2.0F});
  strategy.run([&] { sharded.apply_gradients({{gradient, first}}); });
  const auto refused = [&](const std::vector<GradientAndVariable>& gradients) {
    return message_of(ErrorCode::kInvalidArgument,
                      [&] { strategy.run([&] { sharded.apply_gradients(gradients); }); });
  };
  EXPECT_THAT(refused({{gradient, first}, {gradient, later}}),
              HasSubstr("variable 'later' is not one of those that the replicas share, which are first"));
  EXPECT_THAT(refused({{gradient, first}, {gradient, first}}), HasSubstr("'first' has two gradients"));
  EXPECT_THAT(refused({}), HasSubstr("a step has 0 gradients"));
}

TEST(ShardedOptimizer, WorksAloneToo) {
  for (const bool with_scope : {false, true}) {
    const OneDeviceStrategy strategy(Device::cpu(0));
    std::optional<StrategyScope> scope;
    if (with_scope) scope.emplace(strategy);
    const Variable variable({.initial_value = Tensor::from({1.0F, 2.0F})});
    ShardedOptimizer sharded(std::make_unique<Sgd>(SgdOptions{.learning_rate = 0.5}));
    const auto step = [&] { sharded.apply_gradients({{Tensor::from({1.0F, -2.0F}), variable}}); };
    if (with_scope)
      strategy.run(step);
    else
      step();
    EXPECT_THAT(numbers(variable.read()), ElementsAre(0.5, 3));
  }
}

}  // namespace
}  // namespace cohort::testing
