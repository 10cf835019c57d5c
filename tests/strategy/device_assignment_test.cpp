// Which devices replicas own, one or several.
#include <thrown.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/error.h>
#include <cohort/strategy/device_assignment.h>
#include <cohort/strategy/logical_device_strategy.h>

#include "strategies.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Device cpu(int index) { return Device::cpu(index); }

std::vector<Device> row(const DeviceAssignment& assignment, int replica) {
  const auto devices = assignment.devices_of(replica);
  return {devices.begin(), devices.end()};
}

std::string refusal(const std::function<void()>& call) {
  return testing::message_of(ErrorCode::kInvalidArgument, call);
}

TEST(DeviceAssignment, IsTheTableThatIsGiven) {
  const DeviceAssignment assignment({{cpu(0), cpu(1)}, {cpu(3), cpu(2)}});
  EXPECT_EQ(assignment.num_replicas(), 2);
  EXPECT_EQ(assignment.logical_devices_per_replica(), 2);
  EXPECT_EQ(assignment.device(1, 0), cpu(3));
  EXPECT_THAT(assignment.column(1), ElementsAre(cpu(1), cpu(2)));
}

TEST(DeviceAssignment, CutsBlocksOutOfTheMesh) {
  const DeviceAssignment assignment =
      DeviceAssignment::build(cpu_topology({2, 4}), {.computation_shape = {2, 2}, .num_replicas = 2});
  EXPECT_THAT(row(assignment, 0), ElementsAre(cpu(0), cpu(1), cpu(4), cpu(5)));
  EXPECT_THAT(row(assignment, 1), ElementsAre(cpu(2), cpu(3), cpu(6), cpu(7)));
}

TEST(DeviceAssignment, GivesEachReplicaOneDeviceUnlessTold) {
  const DeviceAssignment assignment = DeviceAssignment::build(cpu_topology({3}), {.num_replicas = 3});
  EXPECT_THAT(assignment.column(0), ElementsAre(cpu(0), cpu(1), cpu(2)));
}

TEST(DeviceAssignment, InterlocksReplicasWithAStride) {
  const DeviceAssignment assignment = DeviceAssignment::build(
      cpu_topology({8}), {.computation_shape = {2}, .computation_stride = {2}, .num_replicas = 4});
  EXPECT_THAT(row(assignment, 0), ElementsAre(cpu(0), cpu(2)));
  EXPECT_THAT(row(assignment, 1), ElementsAre(cpu(1), cpu(3)));
  EXPECT_THAT(row(assignment, 2), ElementsAre(cpu(4), cpu(6)));
  EXPECT_THAT(row(assignment, 3), ElementsAre(cpu(5), cpu(7)));
}

TEST(DeviceAssignment, RefusesTablesThatNobodyCouldUse) {
  EXPECT_THAT(refusal([] { DeviceAssignment({}); }), HasSubstr("at least one replica"));
  EXPECT_THAT(refusal([] { DeviceAssignment({{cpu(0)}, {}}); }), HasSubstr("replica 1 has no"));
  EXPECT_THAT(refusal([] {
                DeviceAssignment({{cpu(0)}, {cpu(1), cpu(2)}});
              }),
              HasSubstr("replica 1 has 2 logical devices, replica 0 has 1"));
  EXPECT_THAT(refusal([] { DeviceAssignment({{cpu(0)}, {cpu(0)}}); }), HasSubstr("cpu:0 is assigned twice"));
}

TEST(DeviceAssignment, RefusesWhatDoesNotFitTheMesh) {
  const DeviceTopology mesh = cpu_topology({2, 2});
  const auto build = [&](DeviceAssignmentOptions options) {
    return refusal([&] { static_cast<void>(DeviceAssignment::build(mesh, options)); });
  };
  EXPECT_THAT(build({.computation_shape = {2}}), HasSubstr("has 1 axes, but the mesh has 2"));
  EXPECT_THAT(build({.computation_shape = {0, 1}}), HasSubstr("below 1"));
  EXPECT_THAT(build({.computation_shape = {1, 3}}), HasSubstr("room for 0"));
  EXPECT_THAT(build({.computation_shape = {1, 2}, .num_replicas = 3}), HasSubstr("room for 2"));
  EXPECT_THAT(build({.computation_shape = {1, 2}, .computation_stride = {1, 2}}), HasSubstr("room for 0"));
  EXPECT_THAT(build({.num_replicas = 0}), HasSubstr("0 replicas"));
  EXPECT_THAT(refusal([] {
                static_cast<void>(DeviceAssignment::build({{2}, {cpu(0)}}));
              }),
              HasSubstr("2 points, but the topology names 1"));
}

TEST(DeviceAssignment, SaysWhichReplicaOrLogicalDeviceThereIsNot) {
  const DeviceAssignment assignment({{cpu(0), cpu(1)}});
  EXPECT_THAT(refusal([&] { static_cast<void>(assignment.device(0, 2)); }), HasSubstr("no logical device 2"));
  EXPECT_THAT(refusal([&] { static_cast<void>(assignment.device(0, -1)); }),
              HasSubstr("no logical device -1"));
  EXPECT_THAT(refusal([&] { static_cast<void>(assignment.device(1, 0)); }), HasSubstr("no replica 1"));
}

}  // namespace
}  // namespace cohort

namespace cohort::testing {
namespace {

// Replicas with several devices each.

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

Device cpu(int index) { return Device::cpu(index); }

/// Replica r has the devices 2r and 2r + 1.
LogicalDeviceStrategy two_by_two() {
  return LogicalDeviceStrategy(DeviceAssignment({{cpu(0), cpu(1)}, {cpu(2), cpu(3)}}), kPatient);
}

/// 0, 1, 2, ... in this shape.
Tensor counted(const Shape& shape) {
  std::vector<float> values(shape.elements());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::from(std::span<const float>(values), shape);
}

TEST(LogicalDevices, ReplicasReduceAsMirroredOnesDo) {
  const LogicalDeviceStrategy strategy = two_by_two();
  EXPECT_EQ(strategy.num_replicas_in_sync(), 2);
  EXPECT_THAT(strategy.worker_devices(), ElementsAre(cpu(0), cpu(2)));
  const auto ids = strategy.run(
      [](ReplicaContext& replica) { return Tensor::scalar(replica.replica_id_in_sync_group() + 1.0); });
  EXPECT_EQ(strategy.reduce(ReduceOp::kSum, ids).item<double>(), 3);
}

std::vector<Device> devices_of(const Variable& variable) {
  std::vector<Device> devices;
  for (const Tensor& component : variable.components()) devices.push_back(component.device());
  return devices;
}

TEST(LogicalDevices, VariablesGoToTheDeviceOfTheScope) {
  const LogicalDeviceStrategy strategy = two_by_two();
  const auto scope = strategy.scope();
  const Variable encoder({.shape = {2}, .name = "encoder"});
  {
    const auto second = strategy.logical_device(1);
    EXPECT_THAT(strategy.worker_devices(), ElementsAre(cpu(1), cpu(3)));
    EXPECT_THAT(devices_of(Variable({.shape = {2}, .name = "decoder"})), ElementsAre(cpu(1), cpu(3)));
    const auto first = strategy.logical_device(0);
    EXPECT_THAT(devices_of(Variable({.shape = {2}, .name = "head"})), ElementsAre(cpu(0), cpu(2)));
  }
  EXPECT_THAT(devices_of(encoder), ElementsAre(cpu(0), cpu(2)));
  EXPECT_THAT(strategy.worker_devices(), ElementsAre(cpu(0), cpu(2)));
  EXPECT_THAT([&] { static_cast<void>(strategy.logical_device(2)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("no logical device 2")));
}

TEST(LogicalDevices, VariablesMadeInReplicasGoThereToo) {
  const LogicalDeviceStrategy strategy = two_by_two();
  const auto made = strategy.run([&](ReplicaContext&) {
    const auto second = strategy.logical_device(1);
    return Variable({.shape = {2}, .name = "inner"}).read().device();
  });
  EXPECT_THAT(made.components(), ElementsAre(cpu(1), cpu(3)));
}

TEST(LogicalDevices, OfAScopeAreLeftByVariablesThatAreColocated) {
  const LogicalDeviceStrategy strategy = two_by_two();
  const auto scope = strategy.scope();
  const Variable encoder({.shape = {2}, .name = "encoder"});
  const auto second = strategy.logical_device(1);
  EXPECT_THAT(devices_of(Variable({.colocate_with = &encoder})), ElementsAre(cpu(0), cpu(2)));
  const auto colocated = strategy.extended().colocate_vars_with(encoder);
  EXPECT_THAT(devices_of(Variable({})), ElementsAre(cpu(0), cpu(2)));
}

TEST(LogicalDevices, OfAScopeAreThoseOfItsStrategyAlone) {
  const LogicalDeviceStrategy strategy = two_by_two();
  const LogicalDeviceStrategy other(DeviceAssignment({{cpu(5)}, {cpu(6)}, {cpu(7)}}), kPatient);
  const auto second = strategy.logical_device(1);
  EXPECT_THAT(other.worker_devices(), ElementsAre(cpu(5), cpu(6), cpu(7)));
  const auto scope = other.scope();
  EXPECT_THAT(devices_of(Variable({})), ElementsAre(cpu(5), cpu(6), cpu(7)));
  const auto others = other.logical_device(0);
  EXPECT_THAT(strategy.worker_devices(), ElementsAre(cpu(1), cpu(3)));
}

TEST(LogicalDevices, AreTheCurrentOnesWhereTheirVariablesAreUpdated) {
  const LogicalDeviceStrategy strategy = two_by_two();
  const auto scope = strategy.scope();
  const auto second = strategy.logical_device(1);
  const Variable decoder({.shape = {2}, .name = "decoder"});
  const auto current =
      strategy.extended().update(decoder, [](const Variable&) { return current_device().value(); });
  EXPECT_THAT(current.components(), ElementsAre(cpu(1), cpu(3)));
}

TEST(LogicalDevices, TensorsAreAssigned) {
  const LogicalDeviceStrategy strategy = two_by_two();
  strategy.run([&](ReplicaContext& replica) {
    const int first = 2 * replica.replica_id_in_sync_group();
    const Tensor moved = strategy.assign_to_logical_device(counted({3}), 1);
    EXPECT_EQ(moved.device(), cpu(first + 1));
    EXPECT_THAT(numbers(moved), ElementsAre(0, 1, 2));
    const std::vector<Tensor> copies = strategy.replicate_to_logical_devices(counted({2}));
    ASSERT_THAT(copies, SizeIs(2));
    for (int id = 0; id < 2; ++id) {
      EXPECT_EQ(copies[static_cast<std::size_t>(id)].device(), cpu(first + id));
      EXPECT_THAT(numbers(copies[static_cast<std::size_t>(id)]), ElementsAre(0, 1));
    }
    for (const int id : {-1, 2}) {
      EXPECT_THAT([&] { static_cast<void>(strategy.assign_to_logical_device(counted({1}), id)); },
                  ThrowsMessage<InvalidArgument>(HasSubstr("no logical device")));
    }
  });
}

TEST(LogicalDevices, TensorsAreSplitInTiles) {
  const LogicalDeviceStrategy four(DeviceAssignment({{cpu(0), cpu(1), cpu(2), cpu(3)}}), kPatient);
  four.run([&](ReplicaContext&) {
    const std::vector<Tensor> tiles = four.split_to_logical_devices(counted({2, 4, 2}), std::vector{2, 2, 1});
    ASSERT_THAT(tiles, SizeIs(4));
    EXPECT_EQ(tiles[0].shape(), (Shape{1, 2, 2}));
    EXPECT_THAT(numbers(tiles[0]), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(numbers(tiles[1]), ElementsAre(4, 5, 6, 7));
    EXPECT_THAT(numbers(tiles[2]), ElementsAre(8, 9, 10, 11));
    EXPECT_THAT(numbers(tiles[3]), ElementsAre(12, 13, 14, 15));
    EXPECT_EQ(tiles[3].device(), cpu(3));
    const std::vector<Tensor> columns = four.split_to_logical_devices(counted({2, 4}), std::vector{1, 4});
    EXPECT_THAT(numbers(columns[2]), ElementsAre(2, 6));
    EXPECT_THAT(numbers(four.split_to_logical_devices(counted({4, 0}), std::vector{4, 1})[1]), SizeIs(0));
  });
}

TEST(LogicalDevices, RefuseWhatCannotBeSplit) {
  const LogicalDeviceStrategy strategy = two_by_two();
  const auto refusal = [&](const Shape& shape, const std::vector<int>& partition) {
    try {
      strategy.run([&](ReplicaContext&) {
        static_cast<void>(strategy.split_to_logical_devices(counted(shape), partition));
      });
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_THAT(refusal({4}, {1, 2}), HasSubstr("2 axes"));
  EXPECT_THAT(refusal({3}, {2}), HasSubstr("axis 0 of float32[3] cannot be cut in 2"));
  EXPECT_THAT(refusal({4}, {0}), HasSubstr("in 0 equal parts"));
  EXPECT_THAT(refusal({4}, {4}), HasSubstr("makes 4 tiles, but each replica has 2"));
}

TEST(LogicalDevices, BelongToReplicas) {
  const LogicalDeviceStrategy strategy = two_by_two();
  const auto scope = strategy.scope();
  EXPECT_THAT([&] { static_cast<void>(strategy.assign_to_logical_device(counted({1}), 0)); },
              ThrowsMessage<WrongContext>(HasSubstr("inside run()")));
  EXPECT_THAT([&] { static_cast<void>(strategy.replicate_to_logical_devices(counted({1}))); },
              ThrowsMessage<WrongContext>(HasSubstr("inside run()")));
}

}  // namespace
}  // namespace cohort::testing
