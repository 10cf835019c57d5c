#include "simulation/simulated_cluster.h"

#include <algorithm>

#include <fmt/format.h>

#include "collective/network/inter_node_impl.h"
#include "collective/node/node_communicator.h"
#include "simulation/simulated_transport.h"

namespace cohort::simulation {
namespace {

/// How often members that nothing happens to look for a reason to give up.
constexpr double kBetweenLooks = 1e-3;

std::vector<int> node_of_members(const SimulatedClusterOptions& options) {
  std::vector<int> node_of;
  for (int node = 0; node < options.nodes; ++node)
    node_of.insert(node_of.end(), static_cast<std::size_t>(options.members), node);
  return node_of;
}

}  // namespace

SimulatedCluster::SimulatedCluster(const SimulatedClusterOptions& options)
    : options_(options),
      network_({options.network, node_of_members(options), options.faults, options.copied_bytes}) {
  const std::vector<int> node_of = node_of_members(options);
  NodeGroupOptions group;
  group.members = options.members;
  group.communication = options.communication;
  for (int node = 0; node < options.nodes; ++node)
    group.workers.push_back({.rank = node, .node = node, .host = fmt::format("node{}", node)});
  for (group.rank = 0; group.rank < options.nodes; ++group.rank) {
    const auto members = std::make_shared<node::NodeGroup>(group);
    for (int local_rank = 0; local_rank < options.members; ++local_rank) {
      const int rank = members->rank_of(local_rank);
      auto impl = std::make_shared<node::NodeCommunicatorImpl>(members, local_rank);
      impl->set_inter_node(std::make_shared<network::InterNodeImpl>(
          *impl, std::make_unique<SimulatedTransport>(network_, rank), network::Topology(node_of, rank)));
      communicators_.push_back(std::make_unique<node::NodeCommunicator>(impl, options.communication));
      members_.push_back(std::move(impl));
    }
  }
}

/// A call of a member that is dead is still in flight.
SimulatedCluster::~SimulatedCluster() {
  network_.end_virtual_time();
  for (int rank = 0; rank < size(); ++rank) {
    if (is_dead(rank)) communicator(rank).abort(Unavailable("it was killed in the simulation"));
  }
}

/// Moves the members of a node on as far as they go; whether one of them moved.
bool SimulatedCluster::drive_node(int node) {
  const int first = node * options_.members;
  bool has_moved = false;
  for (bool moves = true; moves;) {
    moves = false;
    for (int rank = first; rank < first + options_.members; ++rank) {
      if (!is_dead(rank)) moves |= members_[static_cast<std::size_t>(rank)]->try_advance();
    }
    has_moved |= moves;
  }
  return has_moved;
}

void SimulatedCluster::drive_all() {
  for (int node = 0; node < options_.nodes; ++node) static_cast<void>(drive_node(node));
}

SimulatedCall SimulatedCluster::run(const std::function<Work(Communicator&)>& start, double longest_seconds) {
  const double began = seconds();
  SimulatedCall result{.errors = std::vector<std::optional<Error>>(communicators_.size())};
  std::vector<std::optional<Work>> works(communicators_.size());
  for (std::size_t rank = 0; rank < works.size(); ++rank) {
    if (is_dead(static_cast<int>(rank))) continue;
    try {
      works[rank] = start(*communicators_[rank]);
    } catch (const Error& error) {
      result.errors[rank] = error;
    }
  }
  drive_all();
  std::size_t first_open = 0;
  const auto has_ended = [&](std::size_t rank) {
    return !works[rank] || is_dead(static_cast<int>(rank)) || works[rank]->done();
  };
  double next_look = seconds() + kBetweenLooks;
  while (true) {
    while (first_open < works.size() && has_ended(first_open)) ++first_open;
    if (first_open == works.size()) break;
    if (seconds() - began > longest_seconds)
      throw DeadlineExceeded(
          "member {} of the simulated cluster has neither a result nor an error after {} s", first_open,
          longest_seconds);
    if (const std::optional<int> member = network_.go_on(next_look)) {
      static_cast<void>(drive_node(network_.node_of(*member)));
    } else {
      drive_all();
      next_look += kBetweenLooks;
    }
  }
  result.seconds = seconds() - began;
  for (std::size_t rank = 0; rank < works.size(); ++rank) {
    if (!works[rank] || is_dead(static_cast<int>(rank))) continue;
    try {
      works[rank]->wait();
    } catch (const Error& error) {
      result.errors[rank] = error;
    }
  }
  return result;
}

}  // namespace cohort::simulation
