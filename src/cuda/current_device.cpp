#include <cohort/cuda/current_device.h>

#include <cohort/cuda/devices.h>

#include "calls.h"

namespace cohort::cuda {

CurrentDevice::CurrentDevice(Device device) : device_(device), before_(enter(device)) {}

CurrentDevice::~CurrentDevice() {
  if (before_ != device_.index()) leave(before_);
}

int CurrentDevice::enter(Device device) {
  require_device(device);
  const int before = calls::current_device();
  if (before != device.index()) calls::set_device(device.index());
  return before;
}

void CurrentDevice::leave(int before) noexcept {
  // A thread starts with GPU 0, which may be another process's: making it current would create a context
  // there.
  if (calls::has_context(before)) calls::restore_device(before);
}

}  // namespace cohort::cuda
