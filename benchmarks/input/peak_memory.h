// The most memory that this process has had since a moment of one's choice.
#pragma once

#include <cstdint>

namespace cohort::bench {

/// Forgets what has been; where the kernel does not let it, the peak is that of the whole run.
void reset_peak_memory();

/// In bytes, resident, with the pages of mapped files; 0 where the kernel does not tell.
[[nodiscard]] std::uint64_t peak_memory();

}  // namespace cohort::bench
