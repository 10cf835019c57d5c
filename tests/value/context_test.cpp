#include <cohort/value/context.h>

#include <thread>

#include <gmock/gmock.h>

#include <cohort/value/device_scope.h>

namespace cohort {
namespace {

void expect_mode(ContextKind kind, int local_replica) {
  EXPECT_EQ(current_mode().kind, kind);
  EXPECT_EQ(current_mode().local_replica, local_replica);
}

TEST(Context, IsTheDefaultOneOutsideAnyScope) {
  expect_mode(ContextKind::kDefault, -1);
  EXPECT_EQ(current_mode().strategy, nullptr);
  EXPECT_EQ(current_mode().replica, nullptr);
}

TEST(Context, IsThatOfTheInnermostScope) {
  {
    const ContextScope outer({ContextKind::kCrossReplica, nullptr, nullptr, -1});
    expect_mode(ContextKind::kCrossReplica, -1);
    {
      const ContextScope inner({ContextKind::kReplica, nullptr, nullptr, 2});
      expect_mode(ContextKind::kReplica, 2);
    }
    expect_mode(ContextKind::kCrossReplica, -1);
  }
  expect_mode(ContextKind::kDefault, -1);
}

TEST(Context, IsRestoredWhenAnExceptionLeavesTheScope) {
  try {
    const ContextScope scope({ContextKind::kReplica, nullptr, nullptr, 0});
    throw 1;
  } catch (int) {
    expect_mode(ContextKind::kDefault, -1);
  }
}

TEST(Context, BelongsToItsThread) {
  const ContextScope scope({ContextKind::kReplica, nullptr, nullptr, 1});
  std::thread([] {
    expect_mode(ContextKind::kDefault, -1);
    const ContextScope other({ContextKind::kCrossReplica, nullptr, nullptr, -1});
    expect_mode(ContextKind::kCrossReplica, -1);
  }).join();
  expect_mode(ContextKind::kReplica, 1);
}

TEST(DeviceScope, ChoosesTheCurrentDeviceOfItsThread) {
  EXPECT_EQ(current_device(), std::nullopt);
  {
    const DeviceScope outer(Device::cpu(1));
    EXPECT_EQ(current_device(), Device::cpu(1));
    {
      const DeviceScope inner(Device::cpu(2));
      EXPECT_EQ(current_device(), Device::cpu(2));
      std::thread([] { EXPECT_EQ(current_device(), std::nullopt); }).join();
    }
    EXPECT_EQ(current_device(), Device::cpu(1));
  }
  EXPECT_EQ(current_device(), std::nullopt);
}

TEST(DeviceScope, ChangesNothingElse) {
  const ContextScope scope({ContextKind::kReplica, nullptr, nullptr, 1, Device::cpu(1)});
  const DeviceScope elsewhere(Device::cpu(2));
  expect_mode(ContextKind::kReplica, 1);
}

}  // namespace
}  // namespace cohort
