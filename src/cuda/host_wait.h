// How a thread of the host waits for a GPU: it looks again and again, and asks the GPU's guards.
#pragma once

#include <functional>

#include <cohort/device/device.h>

namespace cohort::cuda {

/// Returns once `done()` is true. @throws what a guard of the GPU throws; WrongContext while the GPU is
/// captured.
void wait_on_host(Device device, const std::function<bool()>& done);

}  // namespace cohort::cuda
