#include "memory_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <istream>
#include <limits>
#include <optional>
#include <string>

namespace cohort {
namespace {

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

/// The number in a file of /proc or /sys; nothing when there is none (`max` means no limit).
std::optional<std::size_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::size_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

std::size_t free_on_machine() {
  std::ifstream meminfo("/proc/meminfo");
  return parse_available_memory(meminfo).value_or(kUnlimited);
}

/// What a memory controller's folder leaves; unlimited when it has no limit.
std::size_t left_in(const std::string& folder, const char* limit_name, const char* usage_name) {
  const auto limit = number_in(folder + limit_name);
  const auto usage = number_in(folder + usage_name);
  if (!limit || !usage) return kUnlimited;
  return *limit > *usage ? *limit - *usage : 0;
}

/// The tightest limit from this process's cgroup up to the root, in version 1 and 2 of cgroups.
std::size_t left_in_cgroups() {
  std::size_t left = kUnlimited;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t controllers = line.find(':') + 1;
    const std::size_t path_begin = line.find(':', controllers) + 1;
    const std::string names = line.substr(controllers, path_begin - controllers - 1);
    std::string path = line.substr(path_begin);
    if (!names.empty() && names.find("memory") == std::string::npos) continue;
    while (true) {
      if (path == "/") path.clear();
      left = std::min(left, names.empty() ? left_in("/sys/fs/cgroup" + path, "/memory.max", "/memory.current")
                                          : left_in("/sys/fs/cgroup/memory" + path, "/memory.limit_in_bytes",
                                                    "/memory.usage_in_bytes"));
      if (path.empty()) break;
      path.erase(path.rfind('/'));
    }
  }
  return left;
}

std::size_t soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return limit.rlim_cur;
}

}  // namespace

std::optional<std::size_t> parse_available_memory(std::istream& meminfo) {
  std::string name;
  std::size_t kibibytes = 0;
  while (meminfo >> name >> kibibytes) {
    if (name == "MemAvailable:") return kibibytes * 1024;
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

std::size_t available_memory() { return std::min(free_on_machine(), left_in_cgroups()); }

std::size_t reservable_memory() {
  const auto machine =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  // A quarter of a limited address space: the program has other uses for it.
  const std::size_t addresses = soft_limit(RLIMIT_AS);
  return std::min({machine, soft_limit(RLIMIT_FSIZE), addresses == kUnlimited ? addresses : addresses / 4});
}

}  // namespace cohort
