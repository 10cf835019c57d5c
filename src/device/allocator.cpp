#include <cohort/device/allocator.h>

#include <sys/mman.h>

#include <cstdlib>
#include <utility>

#include <cohort/base/config.h>
#include <cohort/base/error.h>

#include "device_runtime.h"
#include "node_heap.h"

namespace cohort {
namespace {

/// A block of the node heap; null when there is no heap or no room in it.
std::shared_ptr<const Buffer> allocate_shared(std::size_t bytes, Device device) {
  NodeHeap* heap = NodeHeap::of_this_process();
  std::byte* block = heap == nullptr ? nullptr : heap->allocate(bytes);
  if (block == nullptr) return nullptr;
  std::shared_ptr<void> owner(block, [heap, block, bytes](void*) { heap->release(block, bytes); });
  return std::make_shared<const Buffer>(block, bytes, device, std::move(owner));
}

}  // namespace

std::shared_ptr<const Buffer> allocate_private(std::size_t bytes, Device device) {
  if (!is_cpu(device)) return runtime_of(device).allocate(bytes, device);
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  const std::size_t size = round_up(bytes == 0 ? 1 : bytes, alignment);
  void* memory = size < bytes ? nullptr : std::aligned_alloc(alignment, size);
  if (memory == nullptr) {
    throw Unavailable("out of memory: cannot allocate {} bytes on {}", bytes, to_string(device));
  }
  std::shared_ptr<void> owner(memory, [](void* pointer) { std::free(pointer); });
  if (alignment == kHugePage && config().huge_pages()) {
    // Only advice: if the kernel declines, the memory works all the same.
    static_cast<void>(madvise(memory, size, MADV_HUGEPAGE));
  }
  return std::make_shared<const Buffer>(static_cast<std::byte*>(memory), bytes, device, std::move(owner));
}

std::shared_ptr<const Buffer> allocate(std::size_t bytes, Device device) {
  if (!is_cpu(device)) return runtime_of(device).allocate(bytes, device);
  if (std::shared_ptr<const Buffer> shared = allocate_shared(bytes, device)) return shared;
  return allocate_private(bytes, device);
}

}  // namespace cohort
