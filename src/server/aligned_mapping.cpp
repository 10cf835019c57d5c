#include "server/aligned_mapping.h"

#include <sys/mman.h>

#include <cstdint>

#include "device/node_heap.h"

namespace cohort::server {
AlignedMapping AlignedMapping::of(int file, std::size_t bytes, int protection) {
  AlignedMapping result;
  void* const range =
      ::mmap(nullptr, bytes + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return result;
  result.range_ = range;
  result.bytes_ = bytes;
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(range) % kHugePage;
  std::byte* const base = static_cast<std::byte*>(range) + (beyond == 0 ? 0 : kHugePage - beyond);
  if (::mmap(base, bytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) != MAP_FAILED)
    result.base_ = base;
  return result;
}

AlignedMapping::~AlignedMapping() {
  if (range_ != nullptr) ::munmap(range_, bytes_ + kHugePage);
}

}  // namespace cohort::server
