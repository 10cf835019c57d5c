#include "input/peak_memory.h"

#include <fstream>
#include <string>

namespace cohort::bench {

void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << 5; }

std::uint64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes << 10;
  }
  return 0;
}

}  // namespace cohort::bench
