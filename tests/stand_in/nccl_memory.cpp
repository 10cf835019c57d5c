// Memory of NCCL's, and what of it is registered with communicators.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include <cuda_runtime_api.h>

#include "nccl_comm.h"
#include "nccl_stand_in.h"

namespace nccl_stand_in {
namespace {

constexpr int kReleased = 0xdd;

struct Registered {
  ncclComm_t comm = nullptr;
  const std::byte* data = nullptr;
};

struct Blocks {
  std::mutex mutex;
  std::map<const std::byte*, std::size_t> bytes;
  std::map<std::uintptr_t, Registered> registered;  // by handle
  std::uintptr_t last_handle = 0;
};

Blocks& blocks() {
  static Blocks& instance = *new Blocks;
  return instance;
}

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "NCCL stand-in: %s\n", why);
  std::abort();
}

/// With the lock.
bool is_within(const std::byte* data, const std::byte* block) {
  return data >= block && data < block + blocks().bytes.at(block);
}

}  // namespace

void forget_registrations(ncclComm_t comm) {
  const std::lock_guard lock(blocks().mutex);
  std::erase_if(blocks().registered, [&](const auto& entry) { return entry.second.comm == comm; });
}

}  // namespace nccl_stand_in

using namespace nccl_stand_in;

#pragma GCC visibility push(default)
extern "C" {

int nccl_stand_in_registrations() {
  const std::lock_guard lock(blocks().mutex);
  return static_cast<int>(blocks().registered.size());
}

ncclResult_t ncclMemAlloc(void** pointer, std::size_t bytes) {
  if (cudaMalloc(pointer, bytes) != cudaSuccess) return ncclUnhandledCudaError;
  const std::lock_guard lock(blocks().mutex);
  blocks().bytes[static_cast<const std::byte*>(*pointer)] = bytes;
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void* pointer) {
  {
    const std::lock_guard lock(blocks().mutex);
    const auto* const block = static_cast<const std::byte*>(pointer);
    for (const auto& [handle, registered] : blocks().registered) {
      if (is_within(registered.data, block)) give_up("memory is given back that is registered");
    }
    // At once, and not when the GPU is through with it, as cudaFree would.
    std::memset(pointer, kReleased, blocks().bytes.at(block));
    blocks().bytes.erase(block);
  }
  return cudaFree(pointer) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void* data, std::size_t bytes, void** handle) {
  if (comm->is_busy()) return comm->refuse(ncclInvalidArgument, "the communicator is in progress");
  const std::lock_guard lock(blocks().mutex);
  const auto* const first = static_cast<const std::byte*>(data);
  const auto after = blocks().bytes.upper_bound(first);
  if (after == blocks().bytes.begin()) give_up("memory is registered that is not NCCL's");
  const auto& [block, size] = *std::prev(after);
  if (first + bytes > block + size) give_up("memory is registered that is not NCCL's");
  const std::uintptr_t own = ++blocks().last_handle;
  blocks().registered[own] = {comm, first};
  *handle = reinterpret_cast<void*>(own);
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  if (comm->is_busy() || comm->state->running > 0) give_up("memory in use is deregistered");
  const std::lock_guard lock(blocks().mutex);
  return blocks().registered.erase(reinterpret_cast<std::uintptr_t>(handle)) == 1 ? ncclSuccess
                                                                                  : ncclInvalidArgument;
}

}  // extern "C"
#pragma GCC visibility pop
