// How the shims ask libcohort-mpi-memory.so about the program's large blocks of memory. It is found by its
// first function's name; a program that runs without it has no such blocks.
#pragma once

#include <cstddef>

extern "C" {

/// Whole pages, with nothing else in them.
struct CohortMemoryBlock {
  void* begin;
  std::size_t bytes;
  std::size_t asked_bytes;  ///< that the program has asked for, and may use
};

/// 1 where `address` lies in a block of the program, which is then described; else 0.
[[gnu::visibility("default")]] int cohort_memory_block_of(const void* address, CohortMemoryBlock* block);

/// What the shims are told of.
struct CohortMemoryEvents {
  /// Called before the pages of a block move or, with 1, go away. Returns 1 where they are private pages, as
  /// before all that was done to the block, else 0.
  int (*block_ends)(void* begin, int is_unmapped);
  // Right before and after fork(), within the handlers of all others.
  void (*before_fork)();
  void (*after_fork_in_parent)();
  void (*after_fork_in_child)();
};

/// From then on and for all threads. The events are never destroyed.
[[gnu::visibility("default")]] void cohort_memory_tell(const CohortMemoryEvents* events);
}
