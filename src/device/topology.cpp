#include "topology.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <cohort/base/error.h>

#include "hwloc_topology.h"

namespace cohort {
namespace {

HwlocTopology load_cores() {
  HwlocTopology topology = new_hwloc_topology();
  // Caches and devices are not needed here, and leaving them out makes loading several times faster.
  hwloc_topology_set_all_types_filter(topology.get(), HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology.get(), HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  load(topology);
  return topology;
}

int numa_node_of(hwloc_topology_t topology, hwloc_obj_t unit) {
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    if (hwloc_bitmap_isincluded(unit->cpuset, node->cpuset)) return static_cast<int>(node->os_index);
  }
  return 0;
}

}  // namespace

std::vector<Core> allowed_cores() {
  const HwlocTopology topology = load_cores();
  const HwlocBitmap allowed(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology.get(), allowed.get(), HWLOC_CPUBIND_THREAD) != 0) {
    hwloc_bitmap_copy(allowed.get(), hwloc_topology_get_allowed_cpuset(topology.get()));
  }
  std::vector<Core> cores;
  hwloc_obj_t unit = nullptr;
  while ((unit = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PU, unit)) != nullptr) {
    if (!hwloc_bitmap_isset(allowed.get(), unit->os_index)) continue;
    cores.push_back({static_cast<int>(unit->os_index), numa_node_of(topology.get(), unit)});
  }
  if (cores.empty()) throw Unavailable("hwloc finds no core that this process may run on");
  std::stable_sort(cores.begin(), cores.end(),
                   [](const Core& a, const Core& b) { return a.numa_node < b.numa_node; });
  return cores;
}

std::vector<std::vector<int>> split_cores(std::span<const Core> cores, int devices) {
  COHORT_CHECK(!cores.empty());
  if (devices < 1) throw InvalidArgument("cannot split cores among {} devices; ask for at least 1", devices);
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(devices));
  if (groups.size() >= cores.size()) {
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = {cores[i % cores.size()].os_index};
    return groups;
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::size_t begin = i * cores.size() / groups.size();
    const std::size_t end = (i + 1) * cores.size() / groups.size();
    for (std::size_t c = begin; c < end; ++c) groups[i].push_back(cores[c].os_index);
  }
  return groups;
}

std::vector<int> allowed_core_numbers() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> numbers;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return numbers;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) numbers.push_back(core);
  return numbers;
}

std::vector<int> share_of_cores(std::span<const std::vector<int>> allowed, std::size_t own,
                                std::span<const Core> cores) {
  const std::vector<int>& mine = allowed[own];
  const auto sharers = std::ranges::count(allowed, mine);
  if (sharers == 1 || sharers > std::ssize(cores)) return {};
  const auto place = std::ranges::count(allowed.first(own), mine);
  return split_cores(cores, static_cast<int>(sharers))[static_cast<std::size_t>(place)];
}

void pin_current_thread(std::span<const int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    throw Unavailable("cannot pin a thread to its cores: {}", std::strerror(errno));
  }
}

}  // namespace cohort
