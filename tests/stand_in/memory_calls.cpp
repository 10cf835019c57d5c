// Allocation and copies. As in CUDA, a copy from or to ordinary host memory is through with it when
// the call returns, and one between pinned memory and a GPU is not.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "memory.h"
#include "stand_in.h"

namespace gpu_stand_in {
namespace {

Memory& memory() { return Memory::of_this_process(); }

/// The rows of a copy; one of a linear one.
struct Rows {
  std::byte* to;
  std::size_t to_pitch;
  const std::byte* from;
  std::size_t from_pitch;
  std::size_t width;
  std::size_t height;
};

void copy(const Rows& rows) {
  for (std::size_t row = 0; row < rows.height; ++row)
    std::memmove(rows.to + row * rows.to_pitch, rows.from + row * rows.from_pitch, rows.width);
}

cudaError_t copy_on(cudaStream_t stream, const Rows& rows) {
  if (rows.width == 0 || rows.height == 0) return cudaSuccess;
  const std::shared_ptr<LateQueue> queue = queue_of(stream);
  if (queue == nullptr) return report(cudaErrorInvalidResourceHandle);
  const bool from_ordinary = !memory().find(rows.from);
  if (from_ordinary || !memory().find(rows.to)) {
    if (const cudaError_t status = require_not_captured(queue); status != cudaSuccess) return status;
  }
  if (from_ordinary) {
    std::vector<std::byte> staged(rows.width * rows.height);
    copy({staged.data(), rows.width, rows.from, rows.from_pitch, rows.width, rows.height});
    const cudaError_t status = submit(queue, [rows, staged = std::move(staged)] {
      copy({rows.to, rows.to_pitch, staged.data(), rows.width, rows.width, rows.height});
    });
    if (status != cudaSuccess) return status;
  } else if (const cudaError_t status = submit(queue, [rows] { copy(rows); }); status != cudaSuccess) {
    return status;
  }
  if (!memory().find(rows.to)) queue->run_to(queue->end());
  return cudaSuccess;
}

Rows one_row(void* to, const void* from, std::size_t bytes) {
  return {static_cast<std::byte*>(to), bytes, static_cast<const std::byte*>(from), bytes, bytes, 1};
}

cudaError_t give(void** pointer, void* block) {
  if (block == nullptr) return report(cudaErrorMemoryAllocation);
  *pointer = block;
  return cudaSuccess;
}

bool are_pitches(std::size_t to, std::size_t from, std::size_t width) {
  constexpr std::size_t kMost = 2147483647;
  return std::min(to, from) >= width && std::max(to, from) <= kMost;
}

/// The default pool's handle has the number of its GPU, from 1 on.
cudaMemPool_t pool_of(int device) { return reinterpret_cast<cudaMemPool_t>(std::intptr_t{device} + 1); }
int device_of(cudaMemPool_t pool) { return static_cast<int>(reinterpret_cast<std::intptr_t>(pool)) - 1; }

}  // namespace
}  // namespace gpu_stand_in

using namespace gpu_stand_in;

#pragma GCC visibility push(default)
extern "C" {

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *total_bytes = memory_of_each();
  *free_bytes = *total_bytes - memory().used(current_device());
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  count_call("cudaMalloc");
  if (const cudaError_t status = require_safe(); status != cudaSuccess) return status;
  return give(pointer, memory().allocate(bytes, current_device()));
}

cudaError_t cudaFree(void* pointer) {
  count_call("cudaFree");
  if (const cudaError_t status = require_safe(); status != cudaSuccess) return status;
  if (const cudaError_t status = require_none_captured(current_device()); status != cudaSuccess)
    return status;
  run_all(current_device());
  return pointer == nullptr || memory().release(pointer) ? cudaSuccess : report(cudaErrorInvalidValue);
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  count_call("cudaMallocAsync");
  const std::shared_ptr<LateQueue> queue = queue_of(stream);
  if (queue == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (const cudaError_t status = require_not_captured(queue); status != cudaSuccess) return status;
  if (const cudaError_t status = require_usable(queue->device()); status != cudaSuccess) return status;
  void* block = memory().allocate_from_pool(bytes, queue->device());
  if (block == nullptr) {
    // What was released, but late, is memory again.
    queue->run_to(queue->end());
    block = memory().allocate_from_pool(bytes, queue->device());
  }
  return give(pointer, block);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  count_call("cudaFreeAsync");
  const std::shared_ptr<LateQueue> queue = queue_of(stream);
  if (queue == nullptr || !memory().find(pointer)) return report(cudaErrorInvalidValue);
  if (const cudaError_t status = require_not_captured(queue); status != cudaSuccess) return status;
  return submit(queue, [pointer] { memory().release(pointer); });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (!is_device(device)) return report(cudaErrorInvalidDevice);
  *pool = pool_of(device);
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (attribute != cudaMemPoolAttrReleaseThreshold) return report(cudaErrorInvalidValue);
  memory().set_threshold(device_of(pool), *static_cast<std::uint64_t*>(value));
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const Memory::PoolState state = memory().pool(device_of(pool));
  auto& number = *static_cast<std::uint64_t*>(value);
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold: number = state.threshold; return cudaSuccess;
    case cudaMemPoolAttrReservedMemCurrent: number = state.reserved; return cudaSuccess;
    case cudaMemPoolAttrUsedMemCurrent: number = state.used; return cudaSuccess;
    default: return report(cudaErrorInvalidValue);
  }
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t bytes) {
  count_call("cudaMemPoolTrimTo");
  memory().trim_pool(device_of(pool), bytes);
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access, std::size_t count) {
  count_call("cudaMemPoolSetAccess");
  for (std::size_t i = 0; i < count; ++i) {
    const int peer = access[i].location.id;
    int can = 0;
    if (const cudaError_t status = cudaDeviceCanAccessPeer(&can, peer, device_of(pool));
        status != cudaSuccess)
      return status;
    if (can == 0) return report(cudaErrorPeerAccessUnsupported);
    memory().open_pool(device_of(pool), peer);
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  if (!is_device(location->id)) return report(cudaErrorInvalidDevice);
  *flags = memory().is_open(device_of(pool), location->id) ? cudaMemAccessFlagsProtReadWrite
                                                           : cudaMemAccessFlagsProtNone;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  *attributes = {};
  const auto place = memory().find(data);
  if (!place) return cudaSuccess;  // ordinary memory, which CUDA calls unregistered
  attributes->type = place->pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  attributes->device = place->device;
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned int) {
  count_call("cudaHostAlloc");
  return give(pointer, memory().allocate_pinned(bytes));
}

cudaError_t cudaFreeHost(void* pointer) {
  count_call("cudaFreeHost");
  return pointer == nullptr || memory().release(pointer) ? cudaSuccess : report(cudaErrorInvalidValue);
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned int) {
  count_call("cudaHostRegister");
  return memory().pin(pointer, bytes) ? cudaSuccess : report(cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void* pointer) {
  count_call("cudaHostUnregister");
  return memory().unpin(pointer) ? cudaSuccess : report(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  count_call("cudaMemcpyAsync");
  return copy_on(stream, one_row(to, from, bytes));
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                cudaStream_t stream) {
  count_call("cudaMemcpyPeerAsync");
  if (!is_device(to_device) || !is_device(from_device)) return report(cudaErrorInvalidDevice);
  return copy_on(stream, one_row(to, from, bytes));
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* copy, cudaStream_t stream) {
  count_call("cudaMemcpy3DPeerAsync");
  if (!is_device(copy->dstDevice) || !is_device(copy->srcDevice)) return report(cudaErrorInvalidDevice);
  if (copy->extent.depth != 1) return report(cudaErrorInvalidValue);
  if (!are_pitches(copy->dstPtr.pitch, copy->srcPtr.pitch, copy->extent.width))
    return report(cudaErrorInvalidPitchValue);
  return copy_on(stream, {static_cast<std::byte*>(copy->dstPtr.ptr), copy->dstPtr.pitch,
                          static_cast<const std::byte*>(copy->srcPtr.ptr), copy->srcPtr.pitch,
                          copy->extent.width, copy->extent.height});
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind, cudaStream_t stream) {
  count_call("cudaMemcpy2DAsync");
  if (!are_pitches(to_pitch, from_pitch, width)) return report(cudaErrorInvalidPitchValue);
  return copy_on(stream, {static_cast<std::byte*>(to), to_pitch, static_cast<const std::byte*>(from),
                          from_pitch, width, height});
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  count_call("cudaMemcpy");
  const cudaError_t status = copy_on(nullptr, one_row(to, from, bytes));
  const std::shared_ptr<LateQueue> queue = queue_of(nullptr);
  queue->run_to(queue->end());
  return status;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  count_call("cudaMemsetAsync");
  return submit(queue_of(stream), [=] { std::memset(to, value, bytes); });
}

}  // extern "C"
#pragma GCC visibility pop
