// How a host thread waits for a GPU: it polls, and asks the GPU's guards.
#pragma once

#include <functional>

#include <cohort/device/device.h>

namespace cohort::cuda {

/// Returns once `done()` is true. @throws what a guard of the GPU throws; WrongContext while the GPU is
/// captured.
void wait_on_host(Device device, const std::function<bool()>& done);

}  // namespace cohort::cuda
