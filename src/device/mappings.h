// The memory mappings of this process, from /proc/self/maps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace cohort {

struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string permissions = {};  ///< for example `rw-p`
  std::uint64_t offset = 0;      ///< in the file
  std::uint64_t inode = 0;       ///< of the file; 0 for anonymous memory
  std::string name = {};         ///< the file, or for example `[stack]`

  [[nodiscard]] bool is_writable() const { return permissions.starts_with("rw"); }
  [[nodiscard]] bool is_executable() const { return permissions.at(2) == 'x'; }
  [[nodiscard]] bool is_shared() const { return permissions.at(3) == 's'; }
};

/// The mappings with a part between `begin` and `end`, by address. `maps` is as /proc/self/maps.
[[nodiscard]] std::vector<Mapping> mappings_between(std::istream& maps, std::uintptr_t begin,
                                                    std::uintptr_t end);

}  // namespace cohort
