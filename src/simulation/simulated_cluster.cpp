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

/// A member rings after each flag that it raises for others of its node. Who seems to sleep at its bells
/// learns whether they have something new to look at.
struct SimulatedCluster::Bells {
  explicit Bells(node::ControlBlock& block)
      : normal(block.priority_blocks.front().bell), urgent(block.priority_blocks.back().bell) {}

  [[nodiscard]] std::uint32_t rings() const noexcept { return normal.rings() + urgent.rings(); }

  node::Bell::Sleeper normal;
  node::Bell::Sleeper urgent;
};

SimulatedCluster::SimulatedCluster(const SimulatedClusterOptions& options)
    : options_(options),
      network_({options.network, node_of_members(options), options.faults, options.copied_bytes}) {
  const network::Topology topology(node_of_members(options), 0);
  NodeGroupOptions group;
  group.members = options.members;
  group.communication = options.communication;
  group.blocks_in_heap = false;
  group.on_report = [](const JobReport&) {};
  for (int node = 0; node < options.nodes; ++node)
    group.workers.push_back({.rank = node, .node = node, .host = fmt::format("node{}", node)});
  for (group.rank = 0; group.rank < options.nodes; ++group.rank) {
    const auto members = std::make_shared<node::NodeGroup>(group);
    for (int local_rank = 0; local_rank < options.members; ++local_rank) {
      const int rank = members->rank_of(local_rank);
      auto impl = std::make_shared<node::NodeCommunicatorImpl>(members, local_rank);
      impl->set_inter_node(std::make_shared<network::InterNodeImpl>(
          *impl, std::make_unique<SimulatedTransport>(network_, rank), topology.seen_by(rank)));
      communicators_.push_back(std::make_unique<node::NodeCommunicator>(impl, options.communication));
      bells_.emplace_back(members->control_block(local_rank));
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

/// How far the members have come.
struct SimulatedCluster::Progress {
  int calls;
  const Start& start;
  SimulatedRun& run;
  std::vector<std::optional<Work>> works;  ///< of each member's call that is under way

  [[nodiscard]] bool has_ended(std::size_t rank) const {
    return run.errors[rank] || (!works[rank] && run.calls[rank] == calls);
  }

  /// Ends the member's call if it is over, and starts the next one. True if it has moved.
  bool go_on(Communicator& member) {
    const auto rank = static_cast<std::size_t>(member.rank());
    if (has_ended(rank)) return false;
    try {
      if (!works[rank]) {
        works[rank] = start(member, run.calls[rank]);
        return true;
      }
      if (!works[rank]->done()) return false;
      works[rank]->wait();
      ++run.calls[rank];
    } catch (const Error& error) {
      run.errors[rank] = error;
    }
    works[rank].reset();
    return true;
  }
};

/// Moves a member on as far as it goes by itself. True if others of its node may have waited for that: mostly
/// a message has come, which is nothing to them, and looking at all of them takes most of a simulation's
/// time.
bool SimulatedCluster::drive_alone(int rank, Progress& progress) {
  const auto index = static_cast<std::size_t>(rank);
  const auto state = [&] { return std::pair(bells_[index].rings(), progress.run.calls[index]); };
  const auto before = state();
  while (drive(rank, progress)) {
  }
  return state() != before || progress.run.errors[index];
}

/// Moves a member on. True if it has moved.
bool SimulatedCluster::drive(int rank, Progress& progress) {
  if (is_dead(rank)) return false;
  const auto index = static_cast<std::size_t>(rank);
  bool moved = members_[index]->try_advance();
  // Asking a Work whether it is done would drive the member again, and give the core away.
  if (members_[index]->idle()) moved |= progress.go_on(communicator(rank));
  return moved;
}

/// Moves the members of a node on as far as they go.
void SimulatedCluster::drive_node(int node, Progress& progress) {
  const int first = node * options_.members;
  for (bool moves = true; moves;) {
    moves = false;
    for (int rank = first; rank < first + options_.members; ++rank) moves |= drive(rank, progress);
  }
}

SimulatedRun SimulatedCluster::run(int calls, const Start& start, double longest_seconds) {
  const double began = seconds();
  const std::size_t members = communicators_.size();
  SimulatedRun run{.errors = std::vector<std::optional<Error>>(members), .calls = std::vector<int>(members)};
  Progress progress{calls, start, run, std::vector<std::optional<Work>>(members)};
  const auto drive_all = [&] {
    for (int node = 0; node < options_.nodes; ++node) drive_node(node, progress);
  };
  drive_all();
  double next_look = seconds() + kBetweenLooks;
  for (std::size_t first_open = 0;;) {
    while (first_open < members && (is_dead(static_cast<int>(first_open)) || progress.has_ended(first_open)))
      ++first_open;
    if (first_open == members) break;
    if (seconds() - began > longest_seconds)
      throw DeadlineExceeded(
          "member {} of the simulated cluster has neither a result nor an error after {} s", first_open,
          longest_seconds);
    if (const std::optional<int> member = network_.go_on(next_look)) {
      if (drive_alone(*member, progress)) drive_node(network_.node_of(*member), progress);
    } else {
      drive_all();
      next_look += kBetweenLooks;
    }
  }
  run.seconds = seconds() - began;
  return run;
}

}  // namespace cohort::simulation
