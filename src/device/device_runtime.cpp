#include "device_runtime.h"

#include <cstring>

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

void copy_blocks(const BlockCopy& copy) {
  if (!is_cpu(copy.to_device)) return runtime_of(copy.to_device).copy(copy);
  if (!is_cpu(copy.from_device)) return runtime_of(copy.from_device).copy(copy);
  for (std::size_t block = 0; block < copy.count; ++block)
    std::memcpy(copy.to + block * copy.to_pitch, copy.from + block * copy.from_pitch, copy.width);
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
