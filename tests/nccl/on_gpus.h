// Runs what is written for tensors of the CPU on GPUs: a Communicator that copies the tensors of each
// call to its member's GPU, has another communicator make the call there, and copies the results back.
#pragma once

#include <memory>

#include <cohort/collective/communicator.h>
#include <cohort/device/device.h>

namespace cohort::testing {

/// Takes `host` along; its calls are those of a program with tensors on `device`.
[[nodiscard]] std::unique_ptr<Communicator> on_gpu(std::unique_ptr<Communicator> host, Device device);

}  // namespace cohort::testing
