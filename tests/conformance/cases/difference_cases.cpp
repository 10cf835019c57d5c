// Deliberate differences from the original that none of its recorded lines shows; docs/conformance.md gives
// their reasons.
#include <cmath>
#include <limits>

#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/moving_average.h>

#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

class Difference : public Replicas {};
COHORT_INSTANTIATE_CASES(Difference);

Variable made_in(const Strategy& strategy, const VariableOptions& options) {
  const auto scope = strategy.scope();
  return Variable(options);
}

TEST_P(Difference, AVariableBelongsToItsStrategyAlsoAsASingleCopy) {
  const OneDeviceStrategy other;
  for (const Strategy& strategy :
       {strategy_, Strategy(OneDeviceStrategy()), Strategy(CentralStorageStrategy(cpu_devices(1)))}) {
    const Variable variable = made_in(strategy, {});
    const auto scope = other.scope();
    const auto mixed = ThrowsMessage<WrongContext>(HasSubstr("mixing different strategies"));
    EXPECT_THAT([&] { variable.assign(3.0); }, mixed);
    EXPECT_THAT([&] { return variable.read(); }, mixed);
  }
}

TEST_P(Difference, AMovingAverageTakesValuesOfOtherDtypes) {
  const Variable average = made({.initial_value = Tensor::scalar(8.0F)});
  assign_moving_average(average, Tensor::scalar(2), 0.5);
  expect_components(average, 5);
}

TEST_P(Difference, AMovingAverageWorksOutsideAnyScope) {
  const Variable average = made({.initial_value = Tensor::scalar(8.0)});
  strategy_.run([&](ReplicaContext& replica) { average.assign(8.0 * replica.replica_id_in_sync_group()); });
  assign_moving_average(average, Tensor::scalar(2.0), 0.5);
  expect_components(average, [](int r) { return 4 * r + 1; });
}

TEST_P(Difference, ASumOfPartsHasNoMovingAverage) {
  const Variable parts = made({.initial_value = Tensor::scalar(1.0),
                               .synchronization = VariableSynchronization::kOnRead,
                               .aggregation = VariableAggregation::kSum});
  EXPECT_THROW(assign_moving_average(parts, Tensor::scalar(1.0), 0.5), InvalidArgument);
}

TEST_P(Difference, FloatingRowsAreDividedByZero) {
  const Variable rows = made({.initial_value = Tensor::from({1.0, 0.0})});
  rows.scatter_div({Tensor::from({0.0, 0.0}), Tensor::from({0, 1}), {2}});
  for_each_local(rows, [](int, const Tensor& component) {
    EXPECT_EQ(component.span<double>()[0], std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(component.span<double>()[1]));
  });
}

TEST_P(Difference, AnAxisIsNamedOnce) {
  const auto vectors = each([](int) { return Tensor::from({1.0, 2.0}); });
  for (const Axes& axes : {Axes{0, 0}, Axes{0, -1}}) {
    const Strategy strategy = make_strategy(GetParam());  // an error ends one of several workers
    EXPECT_THAT([&] { return strategy.reduce(ReduceOp::kSum, vectors, axes); },
                ThrowsMessage<InvalidArgument>(HasSubstr("is named twice")));
  }
}

TEST_P(Difference, ANumberOfIntegerTypeHasNoMean) {
  EXPECT_THAT([&] { return strategy_.reduce(ReduceOp::kMean, each([](int r) { return r; })); },
              ThrowsMessage<InvalidArgument>(HasSubstr("pass double")));
}

TEST_P(Difference, AnEmptyBatchIsReducedToNothing) {
  const std::vector<std::pair<PerReplica<Tensor>, Destinations>> nothing;
  EXPECT_THAT(strategy_.extended().batch_reduce_to(ReduceOp::kSum, nothing), IsEmpty());
}

TEST_P(Difference, NonSlotDevicesAreDevices) {
  EXPECT_THAT(strategy_.extended().non_slot_devices(),
              ::testing::ElementsAreArray(strategy_.extended().parameter_devices()));
  const CentralStorageStrategy central(cpu_devices(2), Device::cpu(1));
  EXPECT_THAT(central.extended().non_slot_devices(), ElementsAre(Device::cpu(1)));
}

TEST_P(Difference, ATensorLiesWhereItIsTold) {
  for_each_local(each([](int) { return Tensor::zeros({2}, DType::kFloat32); }),
                 [](int, const Tensor& tensor) { EXPECT_EQ(tensor.device(), Device::cpu(0)); });
  const auto there = strategy_.run(
      [](ReplicaContext& replica) { return Tensor::zeros({2}, DType::kFloat32, replica.device()).device(); });
  EXPECT_THAT(there.components(), ::testing::ElementsAreArray(strategy_.extended().worker_devices()));
}

}  // namespace
}  // namespace cohort::testing
