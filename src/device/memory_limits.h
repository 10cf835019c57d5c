// How much memory this process may still take. The kernel does not refuse shared memory that does not fit; it
// kills the process. So code that takes much of it asks first. Any thread may call.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>

namespace cohort {

/// Bytes that can be added now without exceeding the machine's free memory or a cgroup's limit.
[[nodiscard]] std::size_t available_memory();

/// Reads `MemAvailable` from text as /proc/meminfo has it; nothing when it is not there.
[[nodiscard]] std::optional<std::size_t> parse_available_memory(std::istream& meminfo);

/// The largest file and address range that may be reserved without using it: all of the machine's memory, or
/// less where file size and address space are limited.
[[nodiscard]] std::size_t reservable_memory();

}  // namespace cohort
