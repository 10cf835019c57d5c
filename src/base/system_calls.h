// What Cohort asks of the system in many places: calls that a signal interrupts are made again, for a signal
// of the program's own is no failure; files that have no name on a disk, and mappings of files; and what has
// become of another process of this host.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

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

enum class FileSize : std::uint8_t {
  kMayChange,
  kFixed,  ///< by seals: no process can take pages away from another
};

/// A file that exists in memory alone, without a name, and is gone with its last descriptor and mapping: of
/// `bytes` zeros, and never to be executed; `name` is what /proc shows. The caller closes the descriptor,
/// which closes on exec. -1 and `errno` where the system refuses.
[[nodiscard]] int make_memory_file(const char* name, std::size_t bytes = 0,
                                   FileSize size = FileSize::kMayChange) noexcept;

/// A range of a file in the address space of this process, until the end of this object. Where the system
/// refuses, it has no address, and `errno` says why.
class MappedRange {
 public:
  MappedRange() = default;
  /// As mmap takes them.
  MappedRange(int file, std::uint64_t offset, std::size_t bytes, int protection, int flags) noexcept;
  MappedRange(MappedRange&& other) noexcept { *this = std::move(other); }
  MappedRange& operator=(MappedRange&& other) noexcept {
    std::swap(reserved_, other.reserved_);
    std::swap(reserved_bytes_, other.reserved_bytes_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;
  ~MappedRange();

  /// From the beginning of the file, shared with whoever maps it, at a multiple of `alignment`.
  [[nodiscard]] static MappedRange aligned(int file, std::size_t bytes, std::size_t alignment,
                                           int protection) noexcept;

  /// Shared, and twice, one after the other: what goes beyond its end continues at its beginning.
  [[nodiscard]] static MappedRange twice(int file, std::uint64_t offset, std::size_t bytes) noexcept;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  [[nodiscard]] static MappedRange reserve(std::size_t bytes) noexcept;

  void* reserved_ = nullptr;  ///< addresses, of which the range takes some
  std::size_t reserved_bytes_ = 0;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

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

/// Asks the kernel, in microseconds. A process that is ending, or has ended and whose parent has not noticed,
/// is gone.
[[nodiscard]] ProcessState state_of(const ProcessIdentity& process);

}  // namespace cohort
