// The current device of a thread: where `reduce` leaves its result, and which component
// of a Mirrored value code outside replicas gets. It never moves a variable, whose place
// is the strategy's choice. A replica starts on its own device.
//
//     const DeviceScope on_second(Device::cpu(1));
#pragma once

#include <optional>

#include <cohort/device/device.h>
#include <cohort/value/context.h>

namespace cohort {

/// The calling thread's current device; nothing where none was chosen.
[[nodiscard]] inline std::optional<Device> current_device() noexcept { return current_mode().device; }

/// While it lives, `device` is the current one of this thread. Scopes nest and end in reverse order.
class DeviceScope {
 public:
  explicit DeviceScope(Device device) noexcept : scope_(on_device(device)) {}

 private:
  static ContextMode on_device(Device device) noexcept {
    ContextMode mode = current_mode();
    mode.device = device;
    return mode;
  }

  ContextScope scope_;
};

}  // namespace cohort
