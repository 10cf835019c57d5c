#include "system_calls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>

// Newer than some systems' headers.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace cohort {

std::string read_system_file(const std::string& path) {
  const int descriptor = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (descriptor < 0) return {};
  std::string text;
  std::array<char, 4096> part{};
  ssize_t bytes = 0;
  while ((bytes = uninterrupted([&] { return ::read(descriptor, part.data(), part.size()); })) > 0)
    text.append(part.data(), static_cast<std::size_t>(bytes));
  ::close(descriptor);
  return text;
}

int make_memory_file(const char* name, std::size_t bytes, FileSize size) noexcept {
  const unsigned flags = MFD_CLOEXEC | (size == FileSize::kFixed ? MFD_ALLOW_SEALING : 0U);
  int file = ::memfd_create(name, flags | MFD_NOEXEC_SEAL);
  if (file < 0 && errno == EINVAL) file = ::memfd_create(name, flags);  // before Linux 6.3
  if (file < 0) return -1;
  const bool has_size = bytes == 0 || ::ftruncate(file, static_cast<off_t>(bytes)) == 0;
  if (has_size &&
      (size == FileSize::kMayChange || ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0))
    return file;
  const int cause = errno;
  ::close(file);
  errno = cause;
  return -1;
}

MappedRange::MappedRange(int file, std::uint64_t offset, std::size_t bytes, int protection,
                         int flags) noexcept {
  void* const memory = ::mmap(nullptr, bytes, protection, flags, file, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return;
  reserved_ = memory;
  data_ = static_cast<std::byte*>(memory);
  reserved_bytes_ = bytes_ = bytes;
}

MappedRange::~MappedRange() {
  if (reserved_ != nullptr) ::munmap(reserved_, reserved_bytes_);
}

MappedRange MappedRange::reserve(std::size_t bytes) noexcept {
  return MappedRange(-1, 0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
}

MappedRange MappedRange::aligned(int file, std::size_t bytes, std::size_t alignment,
                                 int protection) noexcept {
  MappedRange range = reserve(bytes + alignment);
  if (!range) return range;
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(range.data_) % alignment;
  if (beyond != 0) range.data_ += alignment - beyond;
  range.bytes_ = bytes;
  if (::mmap(range.data_, bytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) == MAP_FAILED)
    return {};
  return range;
}

MappedRange MappedRange::twice(int file, std::uint64_t offset, std::size_t bytes) noexcept {
  MappedRange range = reserve(2 * bytes);
  if (!range) return range;
  for (std::byte* half : {range.data_, range.data_ + bytes}) {
    if (::mmap(half, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
               static_cast<off_t>(offset)) == MAP_FAILED)
      return {};
  }
  return range;
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

namespace {

struct Status {
  char state = '?';
  bool is_exiting = false;
  std::uint64_t started = 0;
};

/// The fields of /proc/PID/stat behind the program's name, which may have spaces and parentheses itself.
std::optional<Status> read_status(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  Status status;
  fields >> status.state;
  constexpr int kFlagsField = 9;
  constexpr int kStartField = 22;
  constexpr std::uint64_t kExiting = 4;  // PF_EXITING of the kernel
  std::string field;
  for (int number = 4; number <= kStartField && fields >> field; ++number) {
    const std::uint64_t value = std::strtoull(field.c_str(), nullptr, 10);
    if (number == kFlagsField) status.is_exiting = (value & kExiting) != 0;
    if (number == kStartField) status.started = value;
  }
  return fields ? std::optional(status) : std::nullopt;
}

std::uint64_t own_pid_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

std::string_view to_string(ProcessState state) noexcept {
  switch (state) {
    case ProcessState::kUnknown: return "unknown";
    case ProcessState::kRunning: return "running";
    case ProcessState::kStopped: return "stopped";
    case ProcessState::kGone: return "gone";
  }
  return "unknown";
}

ProcessIdentity own_identity() {
  const std::optional<Status> status = read_status(::getpid());
  return {.pid = ::getpid(), .started = status ? status->started : 0, .pid_namespace = own_pid_namespace()};
}

ProcessState state_of(const ProcessIdentity& process) {
  if (process.started == 0 || process.pid_namespace == 0 || process.pid_namespace != own_pid_namespace())
    return ProcessState::kUnknown;
  const std::optional<Status> status = read_status(process.pid);
  // The kernel may take long to give back the memory of one that ends; its connections are closed by then.
  if (!status || status->started != process.started || status->is_exiting) return ProcessState::kGone;
  switch (status->state) {
    case 'Z':
    case 'X': return ProcessState::kGone;
    case 'T':
    case 't': return ProcessState::kStopped;
    default: return ProcessState::kRunning;
  }
}

ProcessMemory memory_of(const ProcessIdentity& process) {
  ProcessMemory memory;
  if (process.pid_namespace == 0 || process.pid_namespace != own_pid_namespace()) return memory;
  std::ifstream file(fmt::format("/proc/{}/status", process.pid));
  constexpr std::uint64_t kKibibyte = 1024;
  for (std::string name; file >> name;) {
    std::uint64_t value = 0;
    if (name == "VmHWM:" && file >> value) memory.peak_bytes = value * kKibibyte;
    if (name == "VmRSS:" && file >> value) memory.resident_bytes = value * kKibibyte;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return memory;
}

}  // namespace cohort
