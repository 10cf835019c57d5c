#include "private_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <new>

namespace cohort::bench {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

}  // namespace

PrivateMemory::PrivateMemory(std::size_t bytes, bool huge_pages) : bytes_(bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) throw std::bad_alloc();
  const std::size_t usable = round_up(bytes);
  mapped_ = usable + kHugePage;  // one more, to begin at a boundary
  void* mapping =
      mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(mapping);
  const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
  data_ = mapping_ + (round_up(address) - address);
  // Only advice: a kernel without huge pages refuses it, and the memory serves as well. Where the kernel
  // uses them everywhere, the opposite advice is needed to do without.
  static_cast<void>(madvise(data_, usable, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE));
}

PrivateMemory::~PrivateMemory() { munmap(mapping_, mapped_); }

}  // namespace cohort::bench
