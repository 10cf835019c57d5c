// Runs a function once per member, each on a thread of its own, over several nodes that
// are pretended: groups of threads that meet in memory of their own, with a transport
// between them.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "collective/network_communicators.h"

#include "thread_transport.h"

namespace cohort::testing {

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

}  // namespace cohort::testing
