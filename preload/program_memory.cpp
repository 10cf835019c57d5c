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
  ::pthread_atfork([] { of_this_process().move_back(); }, nullptr, nullptr);
  block_of_.store(find<decltype(&cohort_memory_block_of)>("cohort_memory_block_of"));
}

std::shared_ptr<const void> ProgramMemory::use(std::span<const std::byte> buffer) {
  const auto block_of = block_of_.load(std::memory_order_relaxed);
  CohortMemoryBlock block{};
  if (block_of == nullptr || buffer.size() < kLeastBytes || block_of(buffer.data(), &block) == 0) return {};
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Block>& known = blocks_[block.begin];
  if (known == nullptr) known = std::make_shared<Block>();
  const std::shared_ptr<Block> used = known;
  constexpr std::size_t kPage = 4096;  // no page is smaller
  if (block.begin != buffer.data() || block.bytes - buffer.size() >= kPage) return used;
  if (++used->calls != kCallsBefore || has_windows_) return used;  // it is tried once
  try {
    used->registration.emplace(register_memory({static_cast<std::byte*>(block.begin), block.bytes}));
    if (used->registration->in_node_heap()) moved_bytes_ += block.bytes;
  } catch (const InvalidArgument& error) {  // what the program has made of its pages
    logging::debug("a block of memory stays where it is: {}", error.what());
  }
  return used;
}

void ProgramMemory::note_windows() {
  const std::lock_guard lock(mutex_);
  has_windows_ = true;
}

bool ProgramMemory::end(void* begin) {
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.extract(begin);
  return block.empty() || !block.mapped()->registration;
}

void ProgramMemory::move_back() {
  const std::lock_guard lock(mutex_);
  if (has_windows_) return;
  std::erase_if(blocks_, [](const auto& block) { return block.second.use_count() == 1; });
}

std::size_t ProgramMemory::moved_bytes() {
  const std::lock_guard lock(mutex_);
  return moved_bytes_;
}

}  // namespace cohort::preload
