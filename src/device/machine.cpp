#include "machine.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <hwloc.h>

#include <cohort/base/error.h>

namespace cohort {

void HwlocTopologyDeleter::operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }

void HwlocBitmapDeleter::operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }

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

namespace {

std::size_t index_of(Level level) { return static_cast<std::size_t>(level); }

void choose_source(const HwlocTopology& topology, const std::string& description) {
  if (description.empty()) return;
  if (description.ends_with(".xml")) {
    if (hwloc_topology_set_xml(topology.get(), description.c_str()) != 0)
      throw InvalidArgument("the topology file '{}' cannot be read: {}", description, std::strerror(errno));
  } else if (hwloc_topology_set_synthetic(topology.get(), description.c_str()) != 0) {
    throw InvalidArgument(
        "hwloc does not understand the topology '{}'; write it as 'pack:2 l3:8 core:8 pu:1', or name a file "
        "that ends in .xml, which 'lstopo FILE.xml' writes",
        description);
  }
}

HwlocTopology load_machine(const std::string& description) {
  HwlocTopology topology = new_hwloc_topology();
  hwloc_topology_set_io_types_filter(topology.get(), HWLOC_TYPE_FILTER_KEEP_NONE);
  choose_source(topology, description);
  try {
    load(topology);
  } catch (const Unavailable&) {
    if (description.empty()) throw;
    throw InvalidArgument("the topology '{}' cannot be loaded: it is no topology of hwloc", description);
  }
  return topology;
}

/// The largest cache around a core that it shares with other cores, or null.
hwloc_obj_t shared_cache_of(hwloc_topology_t topology, hwloc_obj_t core) {
  hwloc_obj_t largest = nullptr;
  for (hwloc_obj_t each = core->parent; each != nullptr; each = each->parent) {
    if (hwloc_obj_type_is_dcache(each->type) != 0 &&
        hwloc_get_nbobjs_inside_cpuset_by_type(topology, each->cpuset, HWLOC_OBJ_CORE) > 1)
      largest = each;
  }
  return largest;
}

int logical_index(const hwloc_obj* object) {
  return object == nullptr ? 0 : static_cast<int>(object->logical_index);
}

std::string describe_cache(const hwloc_obj* cache) {
  const auto& attributes = cache->attr->cache;
  std::string text = fmt::format("L{}", attributes.depth);
  if (attributes.size > 0) text += fmt::format(", {} MiB", attributes.size >> 20U);
  return text;
}

std::vector<int> threads_of(hwloc_obj_t core) {
  std::vector<int> threads;
  for (int number = hwloc_bitmap_first(core->cpuset); number >= 0;
       number = hwloc_bitmap_next(core->cpuset, number))
    threads.push_back(number);
  return threads;
}

/// What hwloc says a core belongs to, from the farthest to the nearest.
struct Ancestry {
  int socket = 0;
  int numa_node = 0;
  int cache = 0;
  std::vector<int> threads;

  [[nodiscard]] auto in_order() const { return std::tie(socket, numa_node, cache, threads); }
};

/// Numbers what a level's cores differ in, in the order in which it comes.
class Numbering {
 public:
  int number_of(const std::vector<int>& key) {
    return numbers_.try_emplace(key, static_cast<int>(numbers_.size())).first->second;
  }

 private:
  std::map<std::vector<int>, int> numbers_;
};

}  // namespace

const char* to_string(Level level) {
  switch (level) {
    case Level::kCache: return "cache";
    case Level::kNumaNode: return "NUMA node";
    case Level::kSocket: return "socket";
    case Level::kMachine: return "machine";
  }
  return "?";
}

Level nearest_shared_level(const LevelGroups& one, const LevelGroups& other) {
  const auto* const shared = std::ranges::find_if(
      kLevels, [&](Level level) { return one[index_of(level)] == other[index_of(level)]; });
  return shared == kLevels.end() ? Level::kMachine : *shared;
}

Machine Machine::read(const std::string& description) {
  const HwlocTopology topology = load_machine(description);
  Machine machine;
  std::vector<Ancestry> ancestries;
  hwloc_obj_t core = nullptr;
  while ((core = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_CORE, core)) != nullptr) {
    const hwloc_obj* cache = shared_cache_of(topology.get(), core);
    if (cache != nullptr) machine.cache_ = describe_cache(cache);
    ancestries.push_back(
        {logical_index(hwloc_get_ancestor_obj_by_type(topology.get(), HWLOC_OBJ_PACKAGE, core)),
         hwloc_bitmap_first(core->nodeset), logical_index(cache), threads_of(core)});
  }
  if (ancestries.empty()) throw InvalidArgument("the topology '{}' has no cores", description);
  std::ranges::sort(ancestries, {}, &Ancestry::in_order);
  // A cache may span NUMA nodes, and a NUMA node sockets: the nearer level is divided, so that levels nest.
  std::array<Numbering, kLevels.size()> numberings;
  for (Ancestry& each : ancestries) {
    machine.cores_.push_back({.threads = std::move(each.threads),
                              .group = {numberings[0].number_of({each.socket, each.numa_node, each.cache}),
                                        numberings[1].number_of({each.socket, each.numa_node}),
                                        numberings[2].number_of({each.socket}), 0}});
  }
  return machine;
}

std::size_t Machine::threads() const {
  std::size_t count = 0;
  for (const Core& core : cores_) count += core.threads.size();
  return count;
}

int Machine::groups(Level level) const { return cores_.back().group[index_of(level)] + 1; }

std::vector<Level> Machine::levels_that_count() const {
  std::vector<Level> counting{Level::kMachine};
  for (const Level level : {Level::kSocket, Level::kNumaNode, Level::kCache}) {
    const bool has_several_cores = groups(level) < static_cast<int>(cores_.size());
    if (has_several_cores && groups(level) > groups(counting.front()))
      counting.insert(counting.begin(), level);
  }
  return counting;
}

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
