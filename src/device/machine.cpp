#include "machine.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "hwloc_topology.h"

namespace cohort {
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

}  // namespace cohort
