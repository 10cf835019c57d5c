#include "base/process_state.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>

namespace cohort {
namespace {

struct Status {
  char state = '?';
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
  constexpr int kFieldsBetween = 18;  // of those from the state, the third, to the start, the 22nd
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  fields >> status.started;
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
  if (!status || status->started != process.started) return ProcessState::kGone;
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
