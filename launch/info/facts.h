// What cohort-info reports: this copy of Cohort, how it was built, and what it finds here.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <cohort/base/config.h>

namespace cohort::info {

/// Something that a build may have or lack.
struct Component {
  std::string name;
  bool enabled = false;
  std::string version;  ///< empty unless enabled
};

struct DeviceFacts {
  std::string name;
  std::vector<int> cores;
  std::vector<int> numa_nodes;
};

/// Where this process's tensors get their memory.
struct MemoryFacts {
  std::optional<std::size_t> node_heap_bytes;  ///< what the node heap may grow to; nothing without one
  bool huge_pages = false;                     ///< asked for; the kernel decides
};

struct Facts {
  std::string version;
  std::string build_type;
  std::string compiler;
  std::vector<Component> components;
  std::string mpi_library;
  std::vector<DeviceFacts> devices;
  MemoryFacts memory;
  std::vector<Setting> settings;
};

/// @throws InvalidArgument for a wrong COHORT_ variable.
[[nodiscard]] Facts gather();

[[nodiscard]] std::string to_text(const Facts& facts);
[[nodiscard]] std::string to_json(const Facts& facts);

}  // namespace cohort::info
