#include "pretended_cluster.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "blob_meeting.h"
#include "collective/host_communicators.h"

#include "thread_transport.h"

namespace cohort::testing {
namespace {

/// Each communicator to a thread of its own.
void run_members(std::span<const std::unique_ptr<Communicator>> communicators,
                 const std::function<void(Communicator&)>& function) {
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  for (const auto& communicator : communicators)
    threads.emplace_back([&function, &communicator] { function(*communicator); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

std::string to_string(const Placement& placement) {
  return fmt::format("{}x{}", fmt::join(placement.node_of_worker, "-"), placement.members);
}

void for_each_member(const Placement& placement, const std::function<void(Communicator&)>& function,
                     const CommunicationOptions& options) {
  const std::size_t workers = placement.node_of_worker.size();
  const auto board = std::make_shared<Switchboard>(static_cast<int>(workers) * placement.members);
  NetworkGroupOptions group;
  group.transport = [&](int rank) { return std::make_unique<ThreadTransport>(board, rank); };
  group.node.members = placement.members;
  group.node.communication = options;
  for (const int node : placement.node_of_worker) {
    const auto rank = static_cast<int>(group.node.workers.size());
    group.node.workers.push_back({.rank = rank, .node = node, .local_rank = 0, .host = "here", .pid = 0});
  }
  const bool on_one_node = std::ranges::max(placement.node_of_worker) == 0;

  BlobMeeting meeting(workers);
  const auto work = [&](int rank) {
    NetworkGroupOptions own = group;
    own.node.rank = rank;
    own.node.exchange = [&meeting, rank](std::string_view blob) { return meeting(rank, blob); };
    own.node.memory = NodeMemory::connect(rank, own.node.workers, own.node.exchange);
    ASSERT_TRUE(own.node.memory->shared()) << "workers of one node cannot meet";
    const auto communicators =
        on_one_node ? make_node_communicators(own.node) : make_network_communicators(own);
    run_members(communicators, function);
  };
  std::vector<std::thread> threads;
  threads.reserve(workers);
  for (std::size_t rank = 0; rank < workers; ++rank) threads.emplace_back(work, static_cast<int>(rank));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace cohort::testing
