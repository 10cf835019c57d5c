// How much memory this machine could still give away without taking it from other programs.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>

namespace cohort::bench {

/// In bytes; nothing when the system does not tell.
[[nodiscard]] std::optional<std::size_t> available_memory();

/// Reads `MemAvailable` from text as /proc/meminfo has it.
[[nodiscard]] std::optional<std::size_t> parse_available_memory(std::istream& meminfo);

}  // namespace cohort::bench
