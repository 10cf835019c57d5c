// CUDA's current device is a property of the thread: what it makes, and the kernels that it
// starts, belong to that GPU. A CurrentDevice changes it for a scope.
#pragma once

#include <cohort/device/device.h>

namespace cohort::cuda {

class [[nodiscard]] CurrentDevice {
 public:
  /// @throws Unavailable when there is no such GPU.
  explicit CurrentDevice(Device device);
  /// The device from before is current again, unless the process has not used it: that would give it a
  /// context.
  ~CurrentDevice();

  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  /// The two ends of such a scope, for who keeps the number of the device from before.
  [[nodiscard]] static int enter(Device device);
  static void leave(int before) noexcept;

 private:
  int before_;
};

}  // namespace cohort::cuda
