// Members that are threads of one process, spread over the cores of a machine that is only described.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collective/node/line_counter.h"
#include "collective/node_communicators.h"
#include "device/machine.h"

namespace cohort::testing {

struct Spread {
  int members = 1;
  std::string machine = "pack:2 l3:8 core:8 pu:1";
  bool round_robin = false;  ///< over the sockets, as some launchers place ranks; otherwise side by side
};

inline std::vector<LevelGroups> groups_of(const Spread& spread) {
  const Machine machine = Machine::read(spread.machine);
  const auto members = static_cast<std::size_t>(spread.members);
  const auto sockets = static_cast<std::size_t>(machine.groups(Level::kSocket));
  std::vector<LevelGroups> groups;
  for (std::size_t member = 0; member < members; ++member) {
    const std::size_t place = spread.round_robin
                                  ? member % sockets * ((members + sockets - 1) / sockets) + member / sockets
                                  : member;
    groups.push_back(
        machine.cores()[place * machine.cores().size() / members % machine.cores().size()].group);
  }
  return groups;
}

/// Their announcements go along a tree, however few they are, unless `levels` says otherwise.
inline void for_each_member(const Spread& spread, const std::function<void(Communicator&)>& function,
                            const CommunicationOptions& options = {},
                            LevelOptions levels = {.most_members_without_tree = 1}) {
  levels.groups = groups_of(spread);
  NodeGroupOptions group;
  group.members = spread.members;
  group.communication = options;
  group.levels = levels;
  const auto communicators = make_node_communicators(group);
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  for (const auto& communicator : communicators)
    threads.emplace_back([&function, &communicator] { function(*communicator); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace cohort::testing
