#include "memory.h"

#include <fstream>
#include <istream>
#include <limits>
#include <string>

namespace cohort::bench {

std::optional<std::size_t> available_memory() {
  std::ifstream meminfo("/proc/meminfo");
  return parse_available_memory(meminfo);
}

std::optional<std::size_t> parse_available_memory(std::istream& meminfo) {
  std::string name;
  std::size_t kibibytes = 0;
  while (meminfo >> name >> kibibytes) {
    if (name == "MemAvailable:") return kibibytes * 1024;
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

}  // namespace cohort::bench
