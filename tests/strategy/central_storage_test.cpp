// CentralStorageStrategy: where things are, and how values are reduced. The rules of its
// variables are in sync_on_read_variable_test.cpp.
#include <cohort/strategy/central_storage_strategy.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

std::vector<double> items(const Mirrored<Tensor>& value) {
  std::vector<double> result;
  for (const Tensor& component : value.components()) result.push_back(component.item<double>());
  return result;
}

TEST(CentralStorageDevices, AreTheFirstCpuByDefault) {
  const CentralStorageStrategy strategy;
  EXPECT_THAT(strategy.extended().worker_devices(), ElementsAre(Device::cpu(0)));
  EXPECT_THAT(strategy.extended().parameter_devices(), ElementsAre(Device::cpu(0)));
  EXPECT_EQ(strategy.num_replicas_in_sync(), 1);
  EXPECT_EQ(strategy.extended().cross_device_ops().name(), "ReductionToOneDevice");
}

TEST(CentralStorageDevices, KeepParametersOnTheOnlyOneOrOnTheHost) {
  EXPECT_THAT(CentralStorageStrategy({Device::cpu(3)}).extended().parameter_devices(),
              ElementsAre(Device::cpu(3)));
  EXPECT_THAT(CentralStorageStrategy({Device::cpu(3), Device::cpu(4)}).extended().parameter_devices(),
              ElementsAre(Device::cpu(0)));
  EXPECT_THAT(CentralStorageStrategy(cpu_devices(2), Device::cpu(7)).extended().parameter_devices(),
              ElementsAre(Device::cpu(7)));
}

TEST(CentralStorageDevices, MustExistAndDiffer) {
  EXPECT_THAT(
      [] {
        CentralStorageStrategy({Device::cpu(1), Device::cpu(1)});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("cpu:1 is named twice")));
  EXPECT_THAT([] { CentralStorageStrategy({Device(DeviceKind::kCuda, 0)}); },
              ThrowsMessage<Unavailable>(HasSubstr("cuda:0 does not exist")));
  EXPECT_THAT([] { CentralStorageStrategy(cpu_devices(2), Device(DeviceKind::kCuda, 1)); },
              ThrowsMessage<Unavailable>(HasSubstr("cuda:1 does not exist")));
  EXPECT_THROW(CentralStorageStrategy({}, {}, {.timeout_seconds = -1}), InvalidArgument);
}

class CentralStorage : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static int replicas() { return GetParam(); }
  [[nodiscard]] static double sum() { return sum_to(GetParam()); }
  [[nodiscard]] static double mean() { return sum() / GetParam(); }
  [[nodiscard]] PerReplica<Tensor> counted() const {
    return per_replica(strategy_, [](int id) { return Tensor::scalar(id + 1.0); });
  }
  const CentralStorageStrategy strategy_{cpu_devices(GetParam()), Device::cpu(5), kPatient};
};
INSTANTIATE_TEST_SUITE_P(Replicas, CentralStorage, ::testing::Values(1, 2, 3, 4));

TEST_P(CentralStorage, RunsAReplicaOnEachComputeDevice) {
  EXPECT_EQ(strategy_.num_replicas_in_sync(), replicas());
  const auto devices = strategy_.run([](ReplicaContext& replica) { return replica.device().index(); });
  for (int i = 0; i < replicas(); ++i) EXPECT_EQ(devices[static_cast<std::size_t>(i)], i);
}

TEST_P(CentralStorage, ReducesValues) {
  StrategyExtended& extended = strategy_.extended();
  EXPECT_EQ(strategy_.reduce("sum", counted()).item<double>(), sum());
  EXPECT_EQ(strategy_.reduce("mean", counted()).item<double>(), mean());
  EXPECT_THAT(items(extended.reduce_to("sum", counted(), counted())), AllOf(SizeIs(replicas()), Each(sum())));
  const Variable variable = variable_in(strategy_, {.initial_value = Tensor::scalar(1.0)});
  const Mirrored<Tensor> there = extended.reduce_to("mean", counted(), variable);
  EXPECT_THAT(items(there), ElementsAre(mean()));
  EXPECT_EQ(there[0].device(), Device::cpu(5));
  EXPECT_EQ(variable.read().item<double>(), 1);
  strategy_.run([](ReplicaContext& replica) {
    EXPECT_EQ(replica.all_reduce("sum", replica.replica_id_in_sync_group() + 1.0), sum());
  });
}

TEST_P(CentralStorage, TakesTheComponentsOfAMirroredValueForContributions) {
  const Mirrored<Tensor> means = strategy_.extended().reduce_to("mean", counted(), counted());
  EXPECT_DOUBLE_EQ(strategy_.reduce("sum", means).item<double>(), sum());
  EXPECT_DOUBLE_EQ(strategy_.reduce("mean", means).item<double>(), mean());
}

TEST_P(CentralStorage, TakesAVariableForAPlainValue) {
  const Variable variable = variable_in(
      strategy_, {.initial_value = Tensor::scalar(2.0), .aggregation = VariableAggregation::kSum});
  EXPECT_EQ(strategy_.reduce("mean", variable).item<double>(), 2);
  if (replicas() == 1) {
    EXPECT_EQ(strategy_.reduce("sum", variable).item<double>(), 2);
  } else {
    EXPECT_THROW(static_cast<void>(strategy_.reduce("sum", variable)), InvalidArgument);
  }
}

TEST_P(CentralStorage, TrainsOneCopy) {
  const Variable variable = variable_in(
      strategy_, {.initial_value = Tensor::scalar(10.0), .aggregation = VariableAggregation::kSum});
  strategy_.run([&](ReplicaContext& replica) {
    EXPECT_EQ(variable.read().item<double>(), 10);
    variable.assign_sub(replica.replica_id_in_sync_group() + 1.0);
    EXPECT_EQ(variable.read().item<double>(), 10 - sum());
  });
  EXPECT_THAT(components(variable), ElementsAre(10 - sum()));
}

}  // namespace
}  // namespace cohort::testing
