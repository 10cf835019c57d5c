// The GPUs that this process sees: what CUDA lists, in CUDA's order, after
// CUDA_VISIBLE_DEVICES. `cuda:K` is the K-th of them. Any thread may ask.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <cohort/device/device.h>

namespace cohort::cuda {

/// Properties of a GPU that are known before it is used.
struct DeviceProperties {
  std::string name = {};                    ///< the model, for example `NVIDIA H100 80GB HBM3`
  std::string bus_id = {};                  ///< where it is plugged in, for example `0000:0a:00.0`
  std::array<unsigned char, 16> uuid = {};  ///< the same in every process
  int major = 0;                            ///< compute capability `major.minor`
  int minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  bool has_memory_pools = false;  ///< stream-ordered allocation, which Cohort needs
};

struct DeviceMemory {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

/// `cuda:0` to `cuda:count-1`; none where CUDA finds no GPU, or no driver.
[[nodiscard]] std::vector<Device> devices();

/// Why there are none, in CUDA's words: `no CUDA-capable device is detected`; empty where there are some.
[[nodiscard]] std::string why_no_devices();

/// @throws Unavailable when there is no such GPU, saying how many there are.
void require_device(Device device);

/// @throws as require_device.
[[nodiscard]] DeviceProperties properties(Device device);
[[nodiscard]] DeviceMemory memory(Device device);

/// Whether kernels on `device` may read and write the memory of `peer` in place.
[[nodiscard]] bool can_access_peer(Device device, Device peer);

}  // namespace cohort::cuda
