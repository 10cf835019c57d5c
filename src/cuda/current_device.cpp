#include <cohort/cuda/current_device.h>

#include <cohort/cuda/devices.h>

#include "calls.h"

namespace cohort::cuda {

CurrentDevice::CurrentDevice(Device device) {
  require_device(device);
  before_ = calls::current_device();
  if (before_ != device.index()) calls::set_device(device.index());
}

CurrentDevice::~CurrentDevice() { calls::restore_device(before_); }

}  // namespace cohort::cuda
