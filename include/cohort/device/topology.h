// Which cores this process may use, found with hwloc, and how they are dealt out to
// its logical CPU devices. Cores are numbered as the operating system numbers them.
#pragma once

#include <span>
#include <vector>

namespace cohort {

/// A core that this process may run on.
struct Core {
  int os_index = 0;
  int numa_node = 0;
};

/// The cores in this process's affinity mask, ordered by NUMA node, then by number.
/// @throws Unavailable when hwloc cannot read the machine.
[[nodiscard]] std::vector<Core> allowed_cores();

/// Splits `cores` into `devices` contiguous groups of nearly equal size, so that a device
/// stays within a NUMA node where it can. With more devices than cores, cores are shared
/// round robin.
[[nodiscard]] std::vector<std::vector<int>> split_cores(std::span<const Core> cores, int devices);

/// Restricts the calling thread to `cores` (operating-system numbers).
/// @throws Unavailable when the system refuses.
void pin_current_thread(std::span<const int> cores);

}  // namespace cohort
