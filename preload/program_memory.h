// The program's own large buffers, which are moved into the memory that the ranks of a node share when they come
// again in collectives: where libcohort-mpi-memory.so has given the program its memory, and knows when a block
// ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include <cohort/collective/communicator.h>
#include <cohort/device/memory_registration.h>

#include "memory/memory_interface.h"

namespace cohort::preload {

/// Any thread may call.
class ProgramMemory {
 public:
  /// Never destroyed: the program frees memory until its end.
  [[nodiscard]] static ProgramMemory& of_this_process();

  /// From now on. Only where no rank is on another node, for which network adapters may have pinned pages.
  void start();

  /// A collective uses these bytes: those that come again are moved once they have come a few times. Only
  /// whole blocks are, so that nothing else that the program or its MPI may write at that moment moves with
  /// them.
  void note(std::span<const std::byte> buffer);

  /// Private pages take the place of those of all blocks, with their content.
  void move_all_back();

  /// Bytes that have been moved, in blocks that the program has now or has had.
  [[nodiscard]] std::size_t moved_bytes();

 private:
  struct Block {
    int calls = 0;
    std::optional<MemoryRegistration> registration = {};
  };

  ProgramMemory() = default;
  /// Whether the block had never been moved.
  bool end(void* begin);

  std::atomic<decltype(&cohort_memory_block_at)> block_at_{nullptr};  ///< null without that library
  std::recursive_mutex mutex_;  ///< recursive: memory that is freed meanwhile may end a block
  std::map<const void*, Block> blocks_;
  std::size_t moved_bytes_ = 0;
};

}  // namespace cohort::preload
