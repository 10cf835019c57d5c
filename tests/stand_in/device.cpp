#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <cuda.h>

#include "memory.h"
#include "stand_in.h"

namespace gpu_stand_in {
namespace {

thread_local int chosen_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

struct Counts {
  std::mutex mutex;
  std::map<std::string, std::uint64_t, std::less<>> calls;
};

// Never destroyed, for programs end while their streams still run.
Counts& counts() {
  static Counts& instance = *new Counts;
  return instance;
}

std::atomic<std::uint64_t> with_context{0};  // a bit for each device

/// What has happened to CUDA itself.
struct Fate {
  std::atomic<bool> unloaded{false};
  std::array<std::atomic<int>, 64> failures{};  // of each device
};

Fate& fate() {
  static Fate& instance = *new Fate;
  return instance;
}

/// Called by what programs call first.
void unload_at_exit() {
  static const bool registered = std::atexit([] { fate().unloaded = true; }) == 0;
  static_cast<void>(registered);
}

void give_context(int device) { with_context |= std::uint64_t{1} << device; }

CUresult get_primary_context_state(CUdevice device, unsigned* flags, int* active) {
  *flags = 0;
  *active = static_cast<int>(with_context.load() >> device & 1);
  return CUDA_SUCCESS;
}

std::size_t number_from(const char* variable, std::size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::vector<int> find_visible() {
  const auto all = static_cast<int>(number_from("GPU_STAND_IN_DEVICES", 0));
  std::vector<int> visible;
  const char* const chosen = std::getenv("CUDA_VISIBLE_DEVICES");
  if (chosen == nullptr) {
    for (int device = 0; device < all; ++device) visible.push_back(device);
    return visible;
  }
  std::istringstream list(chosen);
  for (std::string entry; std::getline(list, entry, ',');) {
    const int device = std::atoi(entry.c_str());
    if (device < 0 || device >= all) break;  // CUDA takes those before the first wrong one
    visible.push_back(device);
  }
  return visible;
}

}  // namespace

void count_call(std::string_view function) {
  LateQueue::wait_for_blocked_threads();
  give_context(chosen_device);  // as CUDA may, whatever the handles that the function takes
  const std::lock_guard lock(counts().mutex);
  const auto known = counts().calls.find(function);
  if (known == counts().calls.end())
    counts().calls.emplace(function, 1);
  else
    ++known->second;
}

cudaError_t report(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

cudaError_t require_usable(int device) {
  if (fate().unloaded) return report(cudaErrorCudartUnloading);
  return report(static_cast<cudaError_t>(fate().failures[static_cast<std::size_t>(device)].load()));
}

const std::vector<int>& visible_devices() {
  static const std::vector<int> visible = find_visible();
  return visible;
}

bool is_device(int device) { return device >= 0 && device < static_cast<int>(visible_devices().size()); }

int current_device() {
  give_context(chosen_device);
  return chosen_device;
}

std::size_t memory_of_each() {
  static const std::size_t bytes = number_from("GPU_STAND_IN_MEMORY", std::size_t{1} << 30);
  return bytes;
}

}  // namespace gpu_stand_in

using namespace gpu_stand_in;

#pragma GCC visibility push(default)
extern "C" {

void gpu_stand_in_limit_queues(std::size_t tasks) { LateQueue::limit(tasks); }

std::uint64_t gpu_stand_in_calls(const char* function) {
  const std::lock_guard lock(counts().mutex);
  const auto known = counts().calls.find(std::string_view(function));
  return known == counts().calls.end() ? 0 : known->second;
}

void gpu_stand_in_fail(int device, cudaError_t error) {
  if (error != cudaSuccess) Handles::of_this_process().give_up(device);
  fate().failures[static_cast<std::size_t>(device)] = error;
}

void gpu_stand_in_touch(int device, const void* data) {
  const Memory& memory = Memory::of_this_process();
  if (memory.reaches(device, data)) return;
  const auto place = memory.find(data);
  std::fprintf(stderr, "GPU stand-in: a kernel of cuda:%d uses memory of %s%s without access\n", device,
               place ? "cuda:" : "the host", place ? std::to_string(place->device).c_str() : "");
  gpu_stand_in_fail(device, cudaErrorIllegalAddress);
}

cudaError_t cudaGetDeviceCount(int* count) {
  unload_at_exit();
  *count = static_cast<int>(visible_devices().size());
  return report(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaSetDevice(int device) {
  if (!is_device(device)) return report(cudaErrorInvalidDevice);
  if (const cudaError_t status = require_usable(device); status != cudaSuccess) return status;
  chosen_device = device;
  give_context(device);
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned int /*version*/,
                                             unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* found) {
  const bool is_known = std::string_view(name) == "cuDevicePrimaryCtxGetState";
  *function = is_known ? reinterpret_cast<void*>(&get_primary_context_state) : nullptr;
  *found = is_known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (visible_devices().empty()) return report(cudaErrorNoDevice);
  if (fate().unloaded) return report(cudaErrorCudartUnloading);
  *device = chosen_device;  // which gives it no context
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!is_device(device)) return report(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "stand-in without a GPU");
  const int physical = visible_devices()[static_cast<std::size_t>(device)];
  properties->uuid.bytes[0] = static_cast<char>(physical + 1);
  properties->major = 9;
  properties->multiProcessorCount = 4;
  properties->totalGlobalMem = memory_of_each();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!is_device(device)) return report(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMemoryPoolsSupported: *value = 1; return cudaSuccess;
    default: return report(cudaErrorInvalidValue);
  }
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (!is_device(device)) return report(cudaErrorInvalidDevice);
  const int physical = visible_devices()[static_cast<std::size_t>(device)];
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0",
                static_cast<unsigned>(physical + 1));
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!is_device(device) || !is_device(peer)) return report(cudaErrorInvalidDevice);
  *can = device != peer && std::getenv("GPU_STAND_IN_NO_PEERS") == nullptr ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  count_call("cudaDeviceSynchronize");
  if (const cudaError_t status = require_none_captured(current_device()); status != cudaSuccess)
    return status;
  if (const cudaError_t status = require_usable(current_device()); status != cudaSuccess) return status;
  run_all(current_device());
  Memory::of_this_process().trim_pool(current_device());
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaPeekAtLastError() { return last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidPitchValue: return "cudaErrorInvalidPitchValue";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorCudartUnloading: return "cudaErrorCudartUnloading";
    case cudaErrorPeerAccessUnsupported: return "cudaErrorPeerAccessUnsupported";
    case cudaErrorIllegalState: return "cudaErrorIllegalState";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureMerge: return "cudaErrorStreamCaptureMerge";
    case cudaErrorStreamCaptureUnmatched: return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined: return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation: return "cudaErrorStreamCaptureIsolation";
    case cudaErrorStreamCaptureWrongThread: return "cudaErrorStreamCaptureWrongThread";
    case cudaErrorCapturedEvent: return "cudaErrorCapturedEvent";
    default: return "an error that the stand-in does not name";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorCudartUnloading: return "driver shutting down";
    default: return cudaGetErrorName(error);
  }
}

}  // extern "C"
#pragma GCC visibility pop
