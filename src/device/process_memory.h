// Reading the memory of another process of this node, where the system allows it: containers, namespaces and
// security settings may forbid it. So it is tried, on a number that only the right process has at its place:
// a process with the same pid in another namespace has something else there, or nothing.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace cohort {

/// The number, in private memory of this process; the same for its lifetime.
[[nodiscard]] const std::uint64_t& memory_nonce();

/// Whether `pid` is the process that has `nonce` at `address`, and lets this one read it.
[[nodiscard]] bool memory_can_be_read(pid_t pid, std::uint64_t address, std::uint64_t nonce);

/// Copies from `address` in process `pid`. False, with `errno` set, when not all of it is readable memory.
[[nodiscard]] bool read_process_memory(pid_t pid, std::uint64_t address, std::span<std::byte> destination);

/// Yama lets only ancestors read a process's memory, unless the process itself permits more: this does.
void permit_neighbours_to_read();

}  // namespace cohort
