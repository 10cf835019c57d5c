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

/// The number of GPUs; `why_none` has CUDA's text where there are none.
struct DeviceCount {
  int count = 0;
  std::string why_none = {};
};
[[nodiscard]] DeviceCount device_count();

void set_device(int device);
void restore_device(int device) noexcept;
[[nodiscard]] int current_device();
/// Whether this process has a context on `device`, also true where CUDA cannot say. Making the device current
/// may create one.
[[nodiscard]] bool has_context(int device) noexcept;
[[nodiscard]] cudaDeviceProp device_properties(int device);
[[nodiscard]] int device_attribute(cudaDeviceAttr attribute, int device);
[[nodiscard]] std::string bus_id(int device);
/// The memory of the current device.
void memory_info(std::size_t& free_bytes, std::size_t& total_bytes);
[[nodiscard]] bool can_access_peer(int device, int peer);

// ---- memory ----

/// The pool of `device` keeps what is released to it, for the next allocation.
void keep_released_memory(int device);
/// The pool gives what it keeps back to the system.
void trim_pool(int device);
/// From now on `peer` may read and write the memory of `device`'s pool in place.
void open_memory_to(int device, int peer);
/// From the pool of the stream's device, in the stream's order.
[[nodiscard]] void* malloc_async(std::size_t bytes, cudaStream_t stream);
void free_async(void* memory, cudaStream_t stream) noexcept;

[[nodiscard]] void* host_alloc(std::size_t bytes);
void free_host(void* memory) noexcept;
/// Whether the range could be pinned; if not, copies work all the same, more slowly.
[[nodiscard]] bool host_register(void* memory, std::size_t bytes);
void host_unregister(void* memory) noexcept;

void memcpy_async(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
/// Rows may begin at most this far apart.
inline constexpr std::size_t kMostPitch = 2147483647;
void memcpy_2d_async(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                     std::size_t width, std::size_t height, cudaStream_t stream);
/// Between two devices, whether or not they reach each other's memory.
void memcpy_peer_async(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                       cudaStream_t stream);
void memcpy_2d_peer_async(void* to, int to_device, std::size_t to_pitch, const void* from, int from_device,
                          std::size_t from_pitch, std::size_t width, std::size_t height, cudaStream_t stream);

// ---- kernels ----

/// `argument` is the kernel's only one; it is copied.
void launch_kernel(const void* kernel, unsigned blocks, unsigned threads, const void* argument,
                   cudaStream_t stream);

// ---- streams and events ----

/// On the current device, as the others here; `high` asks for the highest priority.
[[nodiscard]] cudaStream_t create_stream(bool high);
void destroy_stream(cudaStream_t stream) noexcept;
void wait_event(cudaStream_t stream, cudaEvent_t event);
[[nodiscard]] bool is_idle(cudaStream_t stream);

/// `keeps_time` makes an event for timing.
[[nodiscard]] cudaEvent_t create_event(bool keeps_time);
void destroy_event(cudaEvent_t event) noexcept;
void record(cudaEvent_t event, cudaStream_t stream);
[[nodiscard]] bool is_done(cudaEvent_t event);
[[nodiscard]] float elapsed_milliseconds(cudaEvent_t start, cudaEvent_t end);

// ---- graphs ----

/// In the relaxed mode, which permits other calls of any thread during the capture.
void begin_capture(cudaStream_t stream);
[[nodiscard]] cudaGraph_t end_capture(cudaStream_t stream);
[[nodiscard]] cudaGraphExec_t instantiate(cudaGraph_t graph);
void launch_graph(cudaGraphExec_t graph, cudaStream_t stream);
void destroy_graph(cudaGraph_t graph) noexcept;
void destroy_graph(cudaGraphExec_t graph) noexcept;

}  // namespace cohort::cuda::calls
