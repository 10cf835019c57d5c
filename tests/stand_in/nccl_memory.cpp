// Memory of NCCL's, and what of it is registered with communicators.
#include <algorithm>
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
/// The least that NCCL takes from the driver; some versions take as much as a multicast object wants, up to
/// 512 MiB.
constexpr std::size_t kPageBytes = std::size_t{2} << 20;

struct Registered {
  ncclComm_t comm = nullptr;
  const std::byte* data = nullptr;
  std::uint64_t window = 0;  // its number among those of the communicator; 0: it is none
};

struct Blocks {
  std::mutex mutex;
  std::map<const std::byte*, std::size_t> bytes;
  std::map<std::uintptr_t, Registered> registered;  // by handle
  std::uintptr_t last_handle = 0;
  std::map<ncclComm_t, std::uint64_t> windows;  // made so far
};

Blocks& blocks() {
  static Blocks& instance = *new Blocks;
  return instance;
}

/// With the lock.
bool is_within(const std::byte* data, const std::byte* block) {
  return data >= block && data < block + blocks().bytes.at(block);
}

/// With the lock. NCCL takes other memory for windows than its own, but not the way that Cohort asks.
void require_memory_of_nccl(const std::byte* first, std::size_t bytes) {
  const auto after = blocks().bytes.upper_bound(first);
  if (after == blocks().bytes.begin()) give_up("memory is registered that is not NCCL's");
  const auto& [block, size] = *std::prev(after);
  if (first + bytes > block + size) give_up("memory is registered that is not NCCL's");
}

/// With the lock.
std::uintptr_t remember(const Registered& registered) {
  blocks().registered[++blocks().last_handle] = registered;
  return blocks().last_handle;
}

/// With the lock.
int count(bool windows) {
  return static_cast<int>(std::ranges::count_if(
      blocks().registered, [&](const auto& entry) { return (entry.second.window != 0) == windows; }));
}

bool has_windows() {
  const char* const wanted = std::getenv("NCCL_WIN_ENABLE");
  return wanted == nullptr || std::strcmp(wanted, "0") != 0;
}

/// With the lock: which windows a rank has, in a word.
std::uint64_t digest_of_windows(ncclComm_t comm) {
  std::uint64_t digest = 0;
  for (const auto& [handle, registered] : blocks().registered) {
    if (registered.comm == comm && registered.window != 0) digest = digest * 31 + registered.window;
  }
  return digest;
}

ncclResult_t take_back(ncclComm_t comm, std::uintptr_t handle) {
  if (comm->is_busy() || comm->state->running > 0) give_up("memory in use is deregistered");
  const std::lock_guard lock(blocks().mutex);
  return blocks().registered.erase(handle) == 1 ? ncclSuccess : ncclInvalidArgument;
}

}  // namespace

void forget_registrations(ncclComm_t comm) {
  const std::lock_guard lock(blocks().mutex);
  blocks().windows.erase(comm);
  std::erase_if(blocks().registered, [&](const auto& entry) { return entry.second.comm == comm; });
}

}  // namespace nccl_stand_in

using namespace nccl_stand_in;

#pragma GCC visibility push(default)
extern "C" {

int nccl_stand_in_registrations() {
  const std::lock_guard lock(blocks().mutex);
  return count(false);
}

int nccl_stand_in_windows() {
  const std::lock_guard lock(blocks().mutex);
  return count(true);
}

ncclResult_t ncclMemAlloc(void** pointer, std::size_t bytes) {
  const std::size_t pages = (bytes + kPageBytes - 1) / kPageBytes;
  if (cudaMalloc(pointer, pages * kPageBytes) != cudaSuccess) return ncclUnhandledCudaError;
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
    constexpr std::size_t kMost = std::size_t{1} << 20;
    std::memset(pointer, kReleased, std::min(blocks().bytes.at(block), kMost));
    blocks().bytes.erase(block);
  }
  return cudaFree(pointer) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void* data, std::size_t bytes, void** handle) {
  if (comm->is_busy()) return comm->refuse(ncclInvalidArgument, "the communicator is in progress");
  const std::lock_guard lock(blocks().mutex);
  const auto* const first = static_cast<const std::byte*>(data);
  require_memory_of_nccl(first, bytes);
  *handle = reinterpret_cast<void*>(remember({comm, first}));
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  return take_back(comm, reinterpret_cast<std::uintptr_t>(handle));
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3)

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* data, std::size_t bytes, ncclWindow_t* window,
                                    int flags) {
  if (comm->is_busy()) return comm->refuse(ncclInvalidArgument, "the communicator is in progress");
  if (flags != NCCL_WIN_COLL_SYMMETRIC) give_up("a window that is not symmetric");
  *window = nullptr;
  const auto* const first = static_cast<const std::byte*>(data);
  if (!has_windows()) {
    // A registration of this rank's alone, as NCCL makes it.
    const std::lock_guard lock(blocks().mutex);
    require_memory_of_nccl(first, bytes);
    *window = reinterpret_cast<ncclWindow_t>(remember({comm, first}));
    return ncclSuccess;
  }
  std::uint64_t others = 0;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(blocks().mutex);
    require_memory_of_nccl(first, bytes);
    others = digest_of_windows(comm);
    number = ++blocks().windows[comm];
  }
  comm->register_window(bytes, others, [=] {
    const std::lock_guard lock(blocks().mutex);
    *window = reinterpret_cast<ncclWindow_t>(remember({comm, first, number}));
  });
  return ncclInProgress;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  return take_back(comm, reinterpret_cast<std::uintptr_t>(window));
}

#endif

}  // extern "C"
#pragma GCC visibility pop
