// Ownership of hwloc's objects.
#pragma once

#include <memory>

#include <hwloc.h>

namespace cohort {

struct HwlocTopologyDeleter {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, HwlocTopologyDeleter>;

struct HwlocBitmapDeleter {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using HwlocBitmap = std::unique_ptr<hwloc_bitmap_s, HwlocBitmapDeleter>;

/// An empty one. @throws Unavailable.
[[nodiscard]] HwlocTopology new_hwloc_topology();

/// Reads what was asked for. @throws Unavailable.
void load(const HwlocTopology& topology);

}  // namespace cohort
