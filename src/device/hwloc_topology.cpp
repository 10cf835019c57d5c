#include "hwloc_topology.h"

#include <cerrno>
#include <cstring>

#include <cohort/base/error.h>

namespace cohort {

HwlocTopology new_hwloc_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0)
    throw Unavailable("hwloc_topology_init failed: {}", std::strerror(errno));
  return HwlocTopology(raw);
}

void load(const HwlocTopology& topology) {
  if (hwloc_topology_load(topology.get()) != 0)
    throw Unavailable("hwloc_topology_load failed: {}", std::strerror(errno));
}

}  // namespace cohort
