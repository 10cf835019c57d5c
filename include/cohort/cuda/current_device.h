// CUDA's current device is a property of the thread: what it makes, and the kernels that it
// starts, belong to that GPU. A CurrentDevice changes it for a scope.
//
// Make a GPU current for every call on its handles: CUDA may create a context on the current device, some
// hundred MB of its memory, and otherwise each process of a node would create one on GPU 0.
#pragma once

#include <exception>

#include <cohort/device/device.h>

namespace cohort::cuda {

class [[nodiscard]] CurrentDevice {
 public:
  /// @throws Unavailable when there is no such GPU.
  explicit CurrentDevice(Device device);
  /// Makes the previous device current again, unless the process has not used it: that would create a
  /// context.
  ~CurrentDevice();

  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  /// The begin and end of such a scope, for callers that keep the previous device's number themselves.
  [[nodiscard]] static int enter(Device device);
  static void leave(int before) noexcept;

 private:
  Device device_;
  int before_;
};

/// Calls `release` with the device current, unless CUDA has already shut down at the end of a process.
template <class Release>
void release_on(Device device, const Release& release) noexcept {
  try {
    const CurrentDevice current(device);
    release();
  } catch (const std::exception&) {
    // CUDA has released everything when it shut down.
  }
}

}  // namespace cohort::cuda
