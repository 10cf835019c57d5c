// CUDA's current device is a property of the thread: what it makes, and the kernels that it
// starts, belong to that GPU. A CurrentDevice changes it for a scope.
//
// Whatever is done with a GPU's handles is done while it is current: CUDA may give the current device a
// context, in some hundred MB of its memory, and each process of a node would take them of GPU 0.
#pragma once

#include <exception>

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
  Device device_;
  int before_;
};

/// Calls `release` with the device current; not at all where CUDA has gone before, at the end of a process.
template <class Release>
void release_on(Device device, const Release& release) noexcept {
  try {
    const CurrentDevice current(device);
    release();
  } catch (const std::exception&) {
    // What it would give back has gone with CUDA.
  }
}

}  // namespace cohort::cuda
