#include "program_memory.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "device/node_heap.h"

namespace cohort::preload {
namespace {

/// Shorter calls gain nothing, and have no block of their own.
constexpr std::size_t kLeastBytes = std::size_t{256} << 10;
/// A buffer that has come so often comes again; moving it takes as long as some calls.
constexpr int kCallsBefore = 3;

template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

}  // namespace

ProgramMemory& ProgramMemory::of_this_process() {
  static auto* const memory = new ProgramMemory;
  return *memory;
}

void ProgramMemory::start() {
  const auto tell = find<decltype(&cohort_memory_tell)>("cohort_memory_tell");
  if (tell == nullptr) return;
  static constexpr CohortMemoryEvents kEvents = {
      .block_ends = [](void* begin,
                       int is_unmapped) { return of_this_process().end(begin, is_unmapped != 0) ? 1 : 0; },
      .before_fork = [] { of_this_process().before_fork(); },
      .after_fork_in_parent = [] { of_this_process().after_fork_in_parent(); },
      .after_fork_in_child = [] { of_this_process().after_fork_in_child(); },
  };
  tell(&kEvents);
  block_of_.store(find<decltype(&cohort_memory_block_of)>("cohort_memory_block_of"));
}

void ProgramMemory::note(std::span<const std::byte> buffer) {
  const auto block_of = block_of_.load(std::memory_order_relaxed);
  CohortMemoryBlock block{};
  if (block_of == nullptr || buffer.size() < kLeastBytes || block_of(buffer.data(), &block) == 0 ||
      block.begin != buffer.data() || block.asked_bytes != buffer.size())
    return;
  const std::lock_guard lock(mutex_);
  Block& noted = (*blocks_)[block.begin];
  copies_.reserve(blocks_->size());
  if (++noted.calls != kCallsBefore || has_windows_) return;  // it is tried once
  noted.bytes = block.bytes;
  try {
    noted.registration.emplace(register_memory({static_cast<std::byte*>(block.begin), block.bytes}));
    if (noted.registration->in_node_heap()) moved_bytes_ += block.bytes;
  } catch (const InvalidArgument& error) {  // what the program has made of its pages
    logging::debug("a block of memory stays where it is: {}", error.what());
  }
}

void ProgramMemory::note_windows() {
  const std::lock_guard lock(mutex_);
  has_windows_ = true;
}

bool ProgramMemory::end(void* begin, bool is_unmapped) {
  const std::lock_guard lock(mutex_);
  auto block = blocks_->extract(begin);
  if (block.empty() || !block.mapped().registration) return true;
  if (is_unmapped) block.mapped().registration->end_before_unmapping();
  return false;
}

void ProgramMemory::before_fork() {
  mutex_.lock();
  for (const auto& [begin, block] : *blocks_) {
    if (!block.registration || !block.registration->in_node_heap()) continue;
    // By the heap's own mapping, since the program may have forbidden to read some of its pages.
    const std::byte* const content =
        RegisteredRanges::of_this_process().in_heap(static_cast<const std::byte*>(begin), block.bytes);
    if (content == nullptr) continue;
    void* const place = const_cast<void*>(begin);
    void* pages = ::mmap(nullptr, block.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages != MAP_FAILED) {
      std::memcpy(pages, content, block.bytes);
    } else {
      pages = nullptr;
      static_cast<void>(::madvise(place, block.bytes, MADV_DONTFORK));
    }
    copies_.push_back({place, block.bytes, pages});
  }
}

void ProgramMemory::after_fork_in_parent() {
  for (const Copy& copy : copies_) {
    if (copy.pages != nullptr)
      ::munmap(copy.pages, copy.bytes);
    else
      static_cast<void>(::madvise(copy.begin, copy.bytes, MADV_DOFORK));
  }
  copies_.clear();
  mutex_.unlock();
}

void ProgramMemory::after_fork_in_child() {
  for (const Copy& copy : copies_) {
    // By the system itself: UCX puts a function of its own in place of the C library's, which loses the
    // address.
    if (copy.pages != nullptr)
      ::syscall(SYS_mremap, copy.pages, copy.bytes, copy.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, copy.begin);
  }
  copies_.clear();
  // The heap is the parent's. What knows of it is left as it is, also the mutex, which belongs to no thread
  // here.
  block_of_ = nullptr;
  static_cast<void>(blocks_.release());
  blocks_ = std::make_unique<Blocks>();
  ::new (&mutex_) std::recursive_mutex;
}

std::size_t ProgramMemory::moved_bytes() {
  const std::lock_guard lock(mutex_);
  return moved_bytes_;
}

}  // namespace cohort::preload
