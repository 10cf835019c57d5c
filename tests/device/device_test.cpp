#include <cohort/device/device.h>

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Device kCuda1(DeviceKind::kCuda, 1);

TEST(Device, IsTheFirstCpuDeviceByDefault) {
  EXPECT_EQ(Device(), Device::cpu(0));
  EXPECT_EQ(to_string(Device()), "cpu:0");
}

TEST(Device, IsReadInTheFormsThatPeopleWrite) {
  for (const char* name : {"cpu:3", "CPU:3", "/cpu:3", "/CPU:3", "/device:CPU:3", "device:cpu:3"}) {
    EXPECT_EQ(Device::parse(name), Device::cpu(3)) << name;
  }
  for (const char* name : {"cuda:1", "CUDA:1", "gpu:1", "GPU:1", "/gpu:1", "/device:GPU:1"}) {
    EXPECT_EQ(Device::parse(name), kCuda1) << name;
  }
  EXPECT_EQ(Device::parse("cpu"), Device::cpu(0));
  EXPECT_EQ(Device::parse("gpu"), Device(DeviceKind::kCuda, 0));
}

TEST(Device, MayBeGivenByItsName) {
  const std::vector<Device> devices{"/gpu:1", std::string("cpu:2"), std::string_view("cpu")};
  EXPECT_THAT(devices, ElementsAre(kCuda1, Device::cpu(2), Device::cpu(0)));
  EXPECT_THAT([] { return std::vector<Device>{"tpu:0"}; },
              ThrowsMessage<InvalidArgument>(HasSubstr("'tpu:0' is not a device")));
}

TEST(Device, ReadsWhatItPrints) {
  for (const Device device : {Device::cpu(0), Device::cpu(17), kCuda1}) {
    EXPECT_EQ(Device::parse(to_string(device)), device);
  }
  EXPECT_EQ(to_string(kCuda1), "cuda:1");
}

TEST(Device, SaysWhatADeviceLooksLike) {
  for (const char* name : {"", "/", "tpu:0", "cpu:", "cpu:-1", "cpu:x", "cpu:1x", "cpu: 1", "cpu:0 ", "cpu0",
                           "cpu::0", "cpu:99999999999", "//cpu:0", "/job:worker/device:CPU:0"}) {
    EXPECT_THAT([&] { return Device::parse(name); },
                ThrowsMessage<InvalidArgument>(
                    AllOf(HasSubstr("'" + std::string(name) + "'"), HasSubstr("cpu:K or cuda:K"))));
  }
}

TEST(Device, IsOrderedByKindAndNumber) {
  EXPECT_LT(Device::cpu(0), Device::cpu(1));
  EXPECT_LT(Device::cpu(9), kCuda1);
  EXPECT_NE(Device::cpu(1), kCuda1);
}

TEST(CpuDevices, AreNumberedFromZero) {
  EXPECT_THAT(cpu_devices(3), ElementsAre(Device::cpu(0), Device::cpu(1), Device::cpu(2)));
  for (const int count : {0, -1}) {
    EXPECT_THAT([&] { return cpu_devices(count); }, ThrowsMessage<InvalidArgument>(HasSubstr("at least 1")));
  }
}

}  // namespace
}  // namespace cohort
