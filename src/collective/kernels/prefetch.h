// Fetching a cache line before it is needed.
#pragma once

namespace cohort {

// As instructions where the processor is known: GCC 12 takes a function that only prefetches by its builtin
// for one without effect, and drops its calls. And the builtin for writing only reads where the compiler may
// not assume PREFETCHW, which does no harm anywhere: every x86-64 processor that lacks it takes it as a
// no-op.

/// Takes the cache line away from other cores, so that a later store finds it here.
inline void prefetch_to_write(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, /*rw=*/1);
#endif
}

/// A copy of the cache line, so that a later load finds it here.
inline void prefetch_to_read(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetcht0 %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, /*rw=*/0);
#endif
}

}  // namespace cohort
