// What has become of another process of this host.
#pragma once

#include <cstdint>
#include <string_view>

namespace cohort {

/// Tells a process from others that had or get its number.
struct ProcessIdentity {
  std::int64_t pid = 0;
  std::uint64_t started = 0;  ///< when, in the kernel's ticks since the start of the machine; 0: unknown
  std::uint64_t pid_namespace = 0;  ///< within which `pid` counts; 0: unknown
};

enum class ProcessState : std::uint8_t {
  kUnknown,  ///< out of sight: in a container of its own, or there is no /proc
  kRunning,  ///< or asleep
  kStopped,  ///< by a signal or a debugger
  kGone,
};

[[nodiscard]] std::string_view to_string(ProcessState state) noexcept;

/// This process.
[[nodiscard]] ProcessIdentity own_identity();

/// Of a process, as the kernel counts it; zeros where it does not say.
struct ProcessMemory {
  std::uint64_t resident_bytes = 0;
  std::uint64_t peak_bytes = 0;  ///< the most that was resident
};
[[nodiscard]] ProcessMemory memory_of(const ProcessIdentity& process);

/// Asks the kernel, in microseconds. A process that has ended and whose parent has not noticed is gone.
[[nodiscard]] ProcessState state_of(const ProcessIdentity& process);

}  // namespace cohort
