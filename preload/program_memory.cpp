#include "program_memory.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

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
  tell([](void* begin) { return of_this_process().end(begin) ? 1 : 0; });
  // A child has memory of its own.
  ::pthread_atfork([] { of_this_process().move_all_back(); }, nullptr, nullptr);
  block_at_.store(find<decltype(&cohort_memory_block_at)>("cohort_memory_block_at"));
}

void ProgramMemory::note(std::span<const std::byte> buffer) {
  const auto block_at = block_at_.load(std::memory_order_relaxed);
  CohortMemoryBlock block{};
  if (block_at == nullptr || buffer.size() < kLeastBytes || block_at(buffer.data(), &block) == 0) return;
  constexpr std::size_t kPage = 4096;  // no page is smaller
  if (block.bytes - buffer.size() >= kPage) return;
  const std::lock_guard lock(mutex_);
  Block& noted = blocks_[block.begin];
  if (++noted.calls != kCallsBefore) return;  // if it cannot be moved then, it is not tried again
  try {
    noted.registration.emplace(register_memory({static_cast<std::byte*>(block.begin), block.bytes}));
    if (noted.registration->in_node_heap()) moved_bytes_ += block.bytes;
  } catch (const InvalidArgument& error) {  // what the program has made of its pages
    logging::debug("a block of memory stays where it is: {}", error.what());
  }
}

bool ProgramMemory::end(void* begin) {
  const std::lock_guard lock(mutex_);
  auto block = blocks_.extract(begin);
  return block.empty() || !block.mapped().registration;
}

void ProgramMemory::move_all_back() {
  const std::lock_guard lock(mutex_);
  blocks_.clear();
}

std::size_t ProgramMemory::moved_bytes() {
  const std::lock_guard lock(mutex_);
  return moved_bytes_;
}

}  // namespace cohort::preload
