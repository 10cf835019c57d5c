// What Cohort asks of the system in many places: calls that a signal interrupts are made again, for a signal
// of the program's own is no failure; files that have no name on a disk; and what has become of another
// process of this host.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <cohort/base/error.h>

namespace cohort {

/// Makes a call that returns a negative number and sets errno when it fails.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// Writes all of a text, however many calls it takes. @throws Unavailable with the system's reason.
inline void write_fully(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = uninterrupted([&] { return ::write(descriptor, text.data(), text.size()); });
    if (written < 0) throw Unavailable("{}", std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// The whole text of a file in which the kernel says something, as below /proc; empty where there is none or
/// it may not be read.
[[nodiscard]] std::string read_system_file(const std::string& path);

/// A file that exists in memory alone, without a name, and is gone with its last descriptor and mapping:
/// empty, and never to be executed; `name` is what /proc shows. The caller closes the descriptor, which
/// closes on exec. -1 and `errno` where the system refuses.
[[nodiscard]] int make_memory_file(const char* name) noexcept;

/// The name of the host that this process runs on; "unknown" where the system does not say.
[[nodiscard]] std::string host_name();

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
