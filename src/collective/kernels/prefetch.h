// Fetching a cache line before it is needed.
#pragma once

namespace cohort {

/// Takes the cache line away from other cores, so that a later store finds it here.
inline void prefetch_to_write(const void* line) noexcept {
#if defined(__x86_64__)
  // The builtin only reads where the compiler may not assume PREFETCHW; as an instruction it
  // does no harm anywhere: every x86-64 processor that lacks it takes it as a no-op.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, /*rw=*/1);
#endif
}

/// A copy of the cache line, so that a later load finds it here.
inline void prefetch_to_read(const void* line) noexcept { __builtin_prefetch(line, /*rw=*/0); }

}  // namespace cohort
