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

/// `block_ends(begin, is_unmapped)` is called before the pages of a block move or, with 1, go away, from then on
/// and for all threads. It returns 1 where they are private pages, as before all that was done to the block,
/// else 0.
[[gnu::visibility("default")]] void cohort_memory_tell(int (*block_ends)(void* begin, int is_unmapped));
}
