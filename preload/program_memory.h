// The program's own large buffers, which are moved into the memory that the ranks of a node share when they
// come again in collectives: where libcohort-mpi-memory.so has given the program its memory, and knows when a
// block ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
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

  /// A collective uses these bytes, for as long as it has what is returned: those that come again are moved
  /// once they have come a few times. Only whole blocks are, so that nothing else that the program or its MPI
  /// may write at that moment moves with them.
  [[nodiscard]] std::shared_ptr<const void> use(std::span<const std::byte> buffer);

  /// The program has windows of one-sided communication from now on, so others may write to its memory at any
  /// time: every block stays where it is.
  void note_windows();

  /// Private pages take the place of those of the blocks, with their content, but for blocks that are in use.
  void move_back();

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

  std::atomic<decltype(&cohort_memory_block_of)> block_of_{nullptr};  ///< null without that library
  std::recursive_mutex mutex_;  ///< recursive: memory that is freed meanwhile may end a block
  std::map<const void*, std::shared_ptr<Block>> blocks_;  ///< shared with the calls that use them
  std::size_t moved_bytes_ = 0;
  bool has_windows_ = false;
};

}  // namespace cohort::preload
