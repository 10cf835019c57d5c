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
#include <vector>

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

  /// A collective is about to use these bytes: those that come again are moved once they have come a few
  /// times. Only whole blocks are, so that nothing else that the program or its MPI may write at that moment
  /// moves with them.
  void note(std::span<const std::byte> buffer);

  /// The program has windows of one-sided communication from now on, so others may write to its memory at any
  /// time: every block stays where it is.
  void note_windows();

  /// Bytes that have been moved, in blocks that the program has now or has had.
  [[nodiscard]] std::size_t moved_bytes();

 private:
  struct Block {
    int calls = 0;
    std::size_t bytes = 0;
    std::optional<MemoryRegistration> registration = {};
  };
  /// What a child gets in place of a block that was moved.
  struct Copy {
    void* begin;
    std::size_t bytes;
    void* pages;  ///< null where there was no memory for it: the child has nothing there
  };
  using Blocks = std::map<const void*, Block>;

  ProgramMemory() = default;
  /// Whether the block had never been moved.
  bool end(void* begin, bool is_unmapped);
  // Around fork(), for which the mutex is held. The parent's pages stay: other threads may write to them.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

  std::atomic<decltype(&cohort_memory_block_of)> block_of_{nullptr};  ///< null without that library
  std::recursive_mutex mutex_;  ///< recursive: memory that is freed meanwhile may end a block
  std::unique_ptr<Blocks> blocks_ = std::make_unique<Blocks>();
  std::vector<Copy> copies_;  ///< while a thread is in fork(); has room for all blocks
  std::size_t moved_bytes_ = 0;
  bool has_windows_ = false;
};

}  // namespace cohort::preload
