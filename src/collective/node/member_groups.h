// Where the members of this process are in the machine, as far as its cores tell.
#pragma once

#include <vector>

#include "device/machine.h"
#include "device/node_memory.h"

namespace cohort::node {

/// The groups that each of this process's `members` belongs to. Processes that share their cores are spread
/// over them in the order of their ranks, and so are the members of each. Where hwloc cannot read the
/// machine, all are in one group.
/// @throws InvalidArgument for a COHORT_TOPOLOGY that cannot be read.
[[nodiscard]] std::vector<LevelGroups> groups_of_members(const CoreSharers& sharers, int members);

}  // namespace cohort::node
