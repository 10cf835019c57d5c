// Files that exist in memory alone, without a name: gone with their last descriptor and mapping.
#pragma once

namespace cohort {

/// An empty one, never to be executed; `name` is what /proc shows. The caller closes the descriptor, which
/// closes on exec. -1 and `errno` where the system refuses.
[[nodiscard]] int make_memory_file(const char* name) noexcept;

}  // namespace cohort
