// How much memory this process may still take. Shared memory that does not fit is not
// refused: the kernel kills. So the heap asks first.
#pragma once

#include <cstddef>

namespace cohort {

/// Bytes that can be added now without exceeding the machine's free memory or a cgroup's limit.
[[nodiscard]] std::size_t available_memory();

/// The largest file and address range that may be reserved without using it: all of the machine's
/// memory, less under the limits on file size and address space.
[[nodiscard]] std::size_t reservable_memory();

}  // namespace cohort
