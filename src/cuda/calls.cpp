#include "calls.h"

#include <array>
#include <cstdint>
#include <limits>

#include <cuda.h>
#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort::cuda::calls {
namespace {

[[noreturn]] void throw_failed(cudaError_t status, const char* call) {
  int device = -1;
  const bool known = cudaGetDevice(&device) == cudaSuccess;
  static_cast<void>(cudaGetLastError());  // or the next check of a launch would see it again
  const std::string message =
      fmt::format("{} failed on {}: {} ({})", call, known ? fmt::format("cuda:{}", device) : "this process",
                  cudaGetErrorString(status), cudaGetErrorName(status));
  throw_error(status == cudaErrorMemoryAllocation ? ErrorCode::kUnavailable : ErrorCode::kInternal, message);
}

void require_success(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw_failed(status, call);
}

/// A function of the driver. The driver is not linked, since programs would not start where it is missing.
void* driver_function(const char* name) noexcept {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  constexpr unsigned kVersion = 12000;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &function, kVersion, cudaEnableDefault, &found);
#else
  const cudaError_t status = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  return status == cudaSuccess && found == cudaDriverEntryPointSuccess ? function : nullptr;
}

/// For calls with a status of its own for "not yet".
bool is_ready(cudaError_t status, const char* call) {
  if (status == cudaErrorNotReady) return false;
  require_success(status, call);
  return true;
}

}  // namespace

// The call as written is part of the message.
#define COHORT_CUDA(call) require_success((call), #call)
#define COHORT_CUDA_READY(call) is_ready((call), #call)

DeviceCount device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return {count, {}};
  static_cast<void>(cudaGetLastError());
  return {0, cudaGetErrorString(status == cudaSuccess ? cudaErrorNoDevice : status)};
}

void set_device(int device) { COHORT_CUDA(cudaSetDevice(device)); }

void restore_device(int device) noexcept { static_cast<void>(cudaSetDevice(device)); }

int current_device() {
  int device = 0;
  COHORT_CUDA(cudaGetDevice(&device));
  return device;
}

bool has_context(int device) noexcept {
  using GetState = CUresult(CUdevice, unsigned*, int*);
  static auto* const get_state = reinterpret_cast<GetState*>(driver_function("cuDevicePrimaryCtxGetState"));
  unsigned flags = 0;
  int active = 0;
  return get_state == nullptr || get_state(device, &flags, &active) != CUDA_SUCCESS || active != 0;
}

cudaDeviceProp device_properties(int device) {
  cudaDeviceProp properties{};
  COHORT_CUDA(cudaGetDeviceProperties(&properties, device));
  return properties;
}

int device_attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  COHORT_CUDA(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

std::string bus_id(int device) {
  std::array<char, 32> text{};
  COHORT_CUDA(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device));
  return text.data();
}

void memory_info(std::size_t& free_bytes, std::size_t& total_bytes) {
  COHORT_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
}

bool can_access_peer(int device, int peer) {
  int can = 0;
  COHORT_CUDA(cudaDeviceCanAccessPeer(&can, device, peer));
  return can != 0;
}

void keep_released_memory(int device) {
  cudaMemPool_t pool = nullptr;
  COHORT_CUDA(cudaDeviceGetDefaultMemPool(&pool, device));
  std::uint64_t threshold = std::numeric_limits<std::uint64_t>::max();
  COHORT_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

void trim_pool(int device) {
  cudaMemPool_t pool = nullptr;
  COHORT_CUDA(cudaDeviceGetDefaultMemPool(&pool, device));
  COHORT_CUDA(cudaMemPoolTrimTo(pool, 0));
}

void open_memory_to(int device, int peer) {
  cudaMemPool_t pool = nullptr;
  COHORT_CUDA(cudaDeviceGetDefaultMemPool(&pool, device));
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = peer;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  COHORT_CUDA(cudaMemPoolSetAccess(pool, &access, 1));
}

void* malloc_async(std::size_t bytes, cudaStream_t stream) {
  void* memory = nullptr;
  COHORT_CUDA(cudaMallocAsync(&memory, bytes, stream));
  return memory;
}

void free_async(void* memory, cudaStream_t stream) noexcept {
  static_cast<void>(cudaFreeAsync(memory, stream));
}

void* host_alloc(std::size_t bytes) {
  void* memory = nullptr;
  COHORT_CUDA(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable));
  return memory;
}

void free_host(void* memory) noexcept { static_cast<void>(cudaFreeHost(memory)); }

bool host_register(void* memory, std::size_t bytes) {
  const bool registered = cudaHostRegister(memory, bytes, cudaHostRegisterPortable) == cudaSuccess;
  if (!registered) static_cast<void>(cudaGetLastError());
  return registered;
}

void host_unregister(void* memory) noexcept { static_cast<void>(cudaHostUnregister(memory)); }

void memcpy_async(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  COHORT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

void memcpy_2d_async(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                     std::size_t width, std::size_t height, cudaStream_t stream) {
  COHORT_CUDA(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, cudaMemcpyDefault, stream));
}

void memcpy_peer_async(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                       cudaStream_t stream) {
  COHORT_CUDA(cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream));
}

void memcpy_2d_peer_async(void* to, int to_device, std::size_t to_pitch, const void* from, int from_device,
                          std::size_t from_pitch, std::size_t width, std::size_t height,
                          cudaStream_t stream) {
  cudaMemcpy3DPeerParms copy{};
  copy.dstPtr = {to, to_pitch, width, height};
  copy.dstDevice = to_device;
  copy.srcPtr = {const_cast<void*>(from), from_pitch, width, height};
  copy.srcDevice = from_device;
  copy.extent = {width, height, 1};
  COHORT_CUDA(cudaMemcpy3DPeerAsync(&copy, stream));
}

void launch_kernel(const void* kernel, unsigned blocks, unsigned threads, const void* argument,
                   cudaStream_t stream) {
  // CUDA's list of arguments is not const, although it only reads them.
  void* arguments[] = {const_cast<void*>(argument)};
  COHORT_CUDA(cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), arguments, 0, stream));
}

cudaStream_t create_stream(bool high) {
  int least = 0;
  int greatest = 0;
  COHORT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  COHORT_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, high ? greatest : least));
  return stream;
}

void destroy_stream(cudaStream_t stream) noexcept { static_cast<void>(cudaStreamDestroy(stream)); }

void wait_event(cudaStream_t stream, cudaEvent_t event) {
  COHORT_CUDA(cudaStreamWaitEvent(stream, event, cudaEventWaitDefault));
}

bool is_idle(cudaStream_t stream) { return COHORT_CUDA_READY(cudaStreamQuery(stream)); }

cudaEvent_t create_event(bool keeps_time) {
  cudaEvent_t event = nullptr;
  COHORT_CUDA(cudaEventCreateWithFlags(&event, keeps_time ? cudaEventDefault : cudaEventDisableTiming));
  return event;
}

void destroy_event(cudaEvent_t event) noexcept { static_cast<void>(cudaEventDestroy(event)); }

void record(cudaEvent_t event, cudaStream_t stream) { COHORT_CUDA(cudaEventRecord(event, stream)); }

bool is_done(cudaEvent_t event) { return COHORT_CUDA_READY(cudaEventQuery(event)); }

float elapsed_milliseconds(cudaEvent_t start, cudaEvent_t end) {
  float milliseconds = 0;
  COHORT_CUDA(cudaEventElapsedTime(&milliseconds, start, end));
  return milliseconds;
}

void begin_capture(cudaStream_t stream) {
  COHORT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
}

cudaGraph_t end_capture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  COHORT_CUDA(cudaStreamEndCapture(stream, &graph));
  return graph;
}

cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  COHORT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  return executable;
}

void launch_graph(cudaGraphExec_t graph, cudaStream_t stream) { COHORT_CUDA(cudaGraphLaunch(graph, stream)); }

void destroy_graph(cudaGraph_t graph) noexcept { static_cast<void>(cudaGraphDestroy(graph)); }

void destroy_graph(cudaGraphExec_t graph) noexcept { static_cast<void>(cudaGraphExecDestroy(graph)); }

}  // namespace cohort::cuda::calls
