// Which cores this process may use, found with hwloc, and how they are divided among its logical CPU devices.
// Cores are numbered as the operating system numbers them.
#pragma once

#include <cstddef>
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

/// Only the numbers of those cores, without hwloc: cheap.
[[nodiscard]] std::vector<int> allowed_core_numbers();

/// This process's share when the processes of a host may all run on the same cores, as without a binding by
/// the launcher. `allowed` has the core numbers of each process of the host, `own` is the index of this
/// process, `cores` are its cores. Empty when it shares its cores with no other process, or there are too few
/// to split.
[[nodiscard]] std::vector<int> share_of_cores(std::span<const std::vector<int>> allowed, std::size_t own,
                                              std::span<const Core> cores);

/// Restricts the calling thread to `cores` (operating-system numbers).
/// @throws Unavailable when the system refuses.
void pin_current_thread(std::span<const int> cores);

}  // namespace cohort
