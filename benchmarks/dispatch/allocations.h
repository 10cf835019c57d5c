// How often this program has asked for memory: it replaces operator new to count.
#pragma once

#include <cstddef>

namespace cohort::bench {

/// Calls of operator new so far, on all threads.
[[nodiscard]] std::size_t allocations() noexcept;

}  // namespace cohort::bench
