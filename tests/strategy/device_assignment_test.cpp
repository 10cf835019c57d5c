// Which devices replicas own.
#include <cohort/strategy/device_assignment.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thrown.h>
#include <cohort/base/error.h>

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
