#include <cohort/device/device_runtime.h>

// A module for devices defines it. The reference is weak, so that programs without a module link; a link
// option of the module's own makes others link theirs.
extern "C" __attribute__((weak)) cohort::DeviceRuntime* cohort_device_runtime() noexcept;

namespace cohort {

DeviceRuntime* linked_device_runtime() noexcept {
  return cohort_device_runtime == nullptr ? nullptr : cohort_device_runtime();
}

DeviceRuntime& runtime_of(Device device) {
  COHORT_CHECK(!is_cpu(device));
  if (DeviceRuntime* const runtime = linked_device_runtime()) return *runtime;
  throw Unavailable(
      "device {} does not exist: this program has no GPU support; build Cohort with the CUDA toolkit and "
      "link cohort::cuda, or use a cpu:K device",
      to_string(device));
}

void require_exists(Device device) {
  if (!is_cpu(device)) runtime_of(device).require(device);
}

std::vector<Device> gpu_devices() {
  const DeviceRuntime* const runtime = linked_device_runtime();
  return runtime == nullptr ? std::vector<Device>() : runtime->devices();
}

void synchronize(Device device) {
  if (!is_cpu(device)) runtime_of(device).synchronize(device);
}

EnteredDevice::EnteredDevice(Device device) {
  if (is_cpu(device)) return;
  runtime_ = &runtime_of(device);
  before_ = runtime_->enter(device);
}

EnteredDevice::~EnteredDevice() {
  if (runtime_ != nullptr) runtime_->leave(before_);
}

}  // namespace cohort
