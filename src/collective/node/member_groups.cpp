#include "member_groups.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <cohort/base/config.h>
#include <cohort/base/error.h>

#include "device/topology.h"

namespace cohort::node {
namespace {

/// The groups of the cores that this process may use. It does not change, and reading it takes milliseconds.
const std::vector<LevelGroups>& groups_of_cores() {
  static const std::vector<LevelGroups> groups = [] {
    const std::string description = config().topology();
    const std::vector<int> allowed = allowed_core_numbers();
    const auto may_use = [&](const Machine::Core& core) {
      return !description.empty() || std::ranges::find_first_of(core.threads, allowed) != core.threads.end();
    };
    std::vector<LevelGroups> found;
    try {
      const Machine machine = Machine::read(description);
      for (const Machine::Core& core : machine.cores())
        if (may_use(core)) found.push_back(core.group);
    } catch (const Unavailable&) {
      found.clear();
    }
    return found.empty() ? std::vector<LevelGroups>(1) : found;
  }();
  return groups;
}

}  // namespace

std::vector<LevelGroups> groups_of_members(const CoreSharers& sharers, int members) {
  const std::vector<LevelGroups>& cores = groups_of_cores();
  const auto own = static_cast<std::size_t>(members);
  const std::size_t all = own * static_cast<std::size_t>(sharers.count);
  std::vector<LevelGroups> groups;
  for (std::size_t member = 0; member < own; ++member) {
    const std::size_t index = static_cast<std::size_t>(sharers.own_index) * own + member;
    groups.push_back(cores[index * cores.size() / all]);
  }
  return groups;
}

}  // namespace cohort::node
