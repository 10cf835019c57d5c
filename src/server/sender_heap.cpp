#include "server/sender_heap.h"

#include <sys/mman.h>
#include <sys/stat.h>

namespace cohort::server {

SenderHeap::SenderHeap(int descriptor) {
  struct stat facts = {};
  if (descriptor < 0 || ::fstat(descriptor, &facts) != 0 || facts.st_size == 0) return;
  mapping_ = AlignedMapping::of(descriptor, static_cast<std::size_t>(facts.st_size), PROT_READ);
  if (mapping_) static_cast<void>(::madvise(mapping_.data(), mapping_.bytes(), MADV_DONTDUMP));
}

const std::byte* SenderHeap::at(std::uint64_t offset, std::size_t bytes) const noexcept {
  const bool inside = mapping_ && offset <= mapping_.bytes() && bytes <= mapping_.bytes() - offset;
  return inside ? mapping_.data() + offset : nullptr;
}

}  // namespace cohort::server
