// Runs a function once per member, each on a thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <cohort/collective/thread_communicator.h>

#include "collective/host_communicators.h"
#include "collective/node/line_counter.h"
#include "device/machine.h"
#include "thread_transport.h"

namespace cohort::testing {

inline void for_each_member(int members, const std::function<void(Communicator&)>& function,
                            const CommunicationOptions& options = {}) {
  const auto communicators = make_thread_communicators(members, options);
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  for (const auto& communicator : communicators)
    threads.emplace_back([&function, &communicator] { function(*communicator); });
  for (std::thread& thread : threads) thread.join();
}

/// Several nodes that are pretended: groups of threads that meet in memory of their own, with a transport
/// between them.
struct Layout {
  int nodes;
  int members;  ///< of each
};

using MakeTransport = std::function<std::unique_ptr<Transport>(std::shared_ptr<Switchboard>, int rank)>;

inline std::unique_ptr<Transport> make_thread_transport(std::shared_ptr<Switchboard> board, int rank) {
  return std::make_unique<ThreadTransport>(std::move(board), rank);
}

/// Each node is a worker whose members are threads.
inline void for_each_member(const Layout& layout, const std::function<void(Communicator&)>& function,
                            const CommunicationOptions& options = {},
                            const MakeTransport& make_transport = make_thread_transport) {
  const auto board = std::make_shared<Switchboard>(layout.nodes * layout.members);
  NetworkGroupOptions group;
  group.transport = [&](int rank) { return make_transport(board, rank); };
  group.node.members = layout.members;
  group.node.communication = options;
  for (int node = 0; node < layout.nodes; ++node)
    group.node.workers.push_back({.rank = node, .node = node, .local_rank = 0, .host = "here", .pid = 0});

  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int node = 0; node < layout.nodes; ++node) {
    group.node.rank = node;
    for (auto& communicator : make_network_communicators(group))
      communicators.push_back(std::move(communicator));
  }
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  for (const auto& communicator : communicators)
    threads.emplace_back([&function, &communicator] { function(*communicator); });
  for (std::thread& thread : threads) thread.join();
}

/// Members that are spread over the cores of a machine that is only described.
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

/// The error texts of what the members' calls threw, which has to be the same everywhere.
class Texts {
 public:
  void add(std::string text) {
    const std::lock_guard lock(mutex_);
    texts_.insert(std::move(text));
  }
  [[nodiscard]] std::string only() const {
    EXPECT_EQ(texts_.size(), 1u) << ::testing::PrintToString(texts_);
    return texts_.empty() ? "" : *texts_.begin();
  }

 private:
  std::mutex mutex_;
  std::set<std::string> texts_;
};

}  // namespace cohort::testing
