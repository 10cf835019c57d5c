#include "mappings.h"

#include <istream>
#include <sstream>

namespace cohort {

std::vector<Mapping> mappings_between(std::istream& maps, std::uintptr_t begin, std::uintptr_t end) {
  std::vector<Mapping> found;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    Mapping mapping;
    char dash = 0;
    std::string device;
    fields >> std::hex >> mapping.begin >> dash >> mapping.end >> mapping.permissions >> mapping.offset >>
        device >> std::dec >> mapping.inode;
    if (!fields || mapping.permissions.size() != 4) continue;
    if (mapping.end <= begin || mapping.begin >= end) continue;
    std::getline(fields >> std::ws, mapping.name);
    found.push_back(std::move(mapping));
  }
  return found;
}

}  // namespace cohort
