#include "peer_buffer.h"

#include <sys/mman.h>

#include <cohort/base/error.h>
#include <cohort/device/allocator.h>

namespace cohort::bench {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

PeerBuffer::PeerBuffer(std::size_t bytes) : bytes_(bytes) {
  const bool huge = bytes >= kHugePage;
  const std::size_t alignment = huge ? kHugePage : kAlignment;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  if (data_ == nullptr) throw Unavailable("no memory for the peer's buffer of {} bytes", bytes);
  // Advice: a kernel without huge pages refuses it, and the buffer is as good as any other.
  if (huge) madvise(data_.get(), rounded, MADV_HUGEPAGE);
}

}  // namespace cohort::bench
