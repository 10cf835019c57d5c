// Every CUDA function that Cohort uses, each wrapped once: an error becomes an exception with the
// call as written, the device and CUDA's own text. Nothing else calls CUDA. The names are those of
// CUDA without the prefix. Functions for destructors return nothing and ignore errors: at the end of
// a process the runtime may be gone before its user.
#pragma once

#include <cstddef>
#include <string>

#include <cuda_runtime_api.h>

namespace cohort::cuda::calls {

// ---- devices ----

/// How many GPUs there are; `why_none` has CUDA's text where there are none.
struct DeviceCount {
  int count = 0;
  std::string why_none = {};
};
[[nodiscard]] DeviceCount device_count();

void set_device(int device);
void restore_device(int device) noexcept;
[[nodiscard]] int current_device();
[[nodiscard]] cudaDeviceProp device_properties(int device);
[[nodiscard]] int device_attribute(cudaDeviceAttr attribute, int device);
[[nodiscard]] std::string bus_id(int device);
/// Of the current device.
void memory_info(std::size_t& free_bytes, std::size_t& total_bytes);
[[nodiscard]] bool can_access_peer(int device, int peer);

// ---- streams and events ----

/// On the current device, as the others here; `high` asks for the highest priority.
[[nodiscard]] cudaStream_t create_stream(bool high);
void destroy_stream(cudaStream_t stream) noexcept;
void wait_event(cudaStream_t stream, cudaEvent_t event);
[[nodiscard]] bool is_idle(cudaStream_t stream);
void synchronize(cudaStream_t stream);

[[nodiscard]] cudaEvent_t create_event();
void destroy_event(cudaEvent_t event) noexcept;
void record(cudaEvent_t event, cudaStream_t stream);
[[nodiscard]] bool is_done(cudaEvent_t event);
void synchronize(cudaEvent_t event);

}  // namespace cohort::cuda::calls
