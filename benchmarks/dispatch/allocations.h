// How often a program has asked for memory. Linking the source file into it replaces its
// operator new by one that counts. Any thread may call.
#pragma once

#include <cstddef>

namespace cohort::bench {

/// Calls of operator new so far, on all threads.
[[nodiscard]] std::size_t allocations() noexcept;

}  // namespace cohort::bench
