#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>

#include "device/device_runtime.h"

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Device gpu(int index) { return {DeviceKind::kCuda, index}; }

TEST(Devices, AreAllThatThisProcessSees) {
  if (const char* const count = std::getenv("GPU_STAND_IN_DEVICES")) {
    EXPECT_EQ(devices().size(), std::strtoull(count, nullptr, 10));
  }
  EXPECT_EQ(devices().front(), gpu(0));
  EXPECT_EQ(why_no_devices(), "");
}

TEST(Devices, AreDifferentGpus) {
  std::set<std::string> bus_ids;
  std::set<std::array<unsigned char, 16>> uuids;
  for (const Device device : devices()) {
    const DeviceProperties known = properties(device);
    EXPECT_NE(known.name, "");
    EXPECT_GT(known.memory_bytes, 0u);
    EXPECT_GT(known.multiprocessors, 0);
    bus_ids.insert(known.bus_id);
    uuids.insert(known.uuid);
  }
  EXPECT_EQ(bus_ids.size(), devices().size());
  EXPECT_EQ(uuids.size(), devices().size());
}

TEST(Devices, AreNamedInMessagesAsNvidiaSmiNamesThem) {
  for (const Device device : devices()) {
    const std::string name = runtime_of(device).identity(device);
    ASSERT_EQ(name.size(), 40u) << name;
    EXPECT_EQ(name.substr(0, 4), "GPU-");
    for (const std::size_t dash : {12u, 17u, 22u, 27u}) EXPECT_EQ(name[dash], '-') << name;
    EXPECT_EQ(std::ranges::count(name, '-'), 5) << name;
  }
}

TEST(Devices, SayHowManyThereAreWhereOneIsMissing) {
  const Device beyond = gpu(static_cast<int>(devices().size()));
  const std::string last = to_string(devices().back());
  EXPECT_THAT([&] { require_device(beyond); },
              ThrowsMessage<Unavailable>(AllOf(HasSubstr(to_string(beyond)), HasSubstr("to " + last))));
  EXPECT_THROW(static_cast<void>(properties(beyond)), Unavailable);
}

TEST(Devices, HaveMemory) {
  for (const Device device : devices()) {
    const DeviceMemory known = memory(device);
    EXPECT_GT(known.free_bytes, 0u);
    EXPECT_GE(known.total_bytes, known.free_bytes);
  }
}

}  // namespace
}  // namespace cohort::cuda
