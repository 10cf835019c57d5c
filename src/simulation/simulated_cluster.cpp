#include "simulation/simulated_cluster.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "collective/network/inter_node_impl.h"
#include "collective/node/node_communicator.h"
#include "simulated_network.h"

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

/// One of a member's communicators. A member rings after each flag that it raises for others of its node. Who
/// seems to sleep at its bells learns whether they have something new to look at.
struct SimulatedCluster::Part {
  Part(std::unique_ptr<node::NodeCommunicator> made, int local_rank_in_it)
      : communicator(std::move(made)),
        local_rank(local_rank_in_it),
        normal(block().priority_blocks.front().bell),
        urgent(block().priority_blocks.back().bell) {}

  [[nodiscard]] node::NodeCommunicatorImpl& impl() const { return *communicator->impl(); }
  [[nodiscard]] node::ControlBlock& block() const { return impl().group().control_block(local_rank); }
  [[nodiscard]] std::uint32_t rings() const noexcept { return normal.rings() + urgent.rings(); }

  std::unique_ptr<node::NodeCommunicator> communicator;
  int local_rank;
  node::Bell::Sleeper normal;
  node::Bell::Sleeper urgent;
};

/// A member's part of a split.
struct SimulatedCluster::Split {
  node::NodeSplit split;
  Communicator* group = nullptr;
};

struct SimulatedCluster::Member {
  std::vector<std::unique_ptr<Part>> parts;    ///< the first one is of all members
  std::vector<std::unique_ptr<Split>> splits;  ///< in the order in which they were begun

  /// Where a neighbour has changed something, or this member has.
  [[nodiscard]] std::uint32_t rings() const noexcept {
    std::uint32_t sum = 0;
    for (const std::unique_ptr<Part>& part : parts) sum += part->rings();
    return sum;
  }
};

/// Who has waited for it has its group.
class SimulatedCluster::SplitWork final : public Work::State {
 public:
  SplitWork(Member& member, node::NodeCommunicator& parent, Split& split)
      : member_(member), parent_(parent), split_(split), exchange_(parent.start_split(split.split)) {}

  void wait() override {
    exchange_.wait();
    if (std::exchange(is_over_, true)) return;
    std::unique_ptr<node::NodeCommunicator> group = parent_.finish_split(split_.split);
    if (group == nullptr) return;
    split_.group = group.get();
    const int local_rank = group->impl()->group().first_own_local_rank();
    member_.parts.push_back(std::make_unique<Part>(std::move(group), local_rank));
  }
  [[nodiscard]] bool done() noexcept override { return exchange_.done(); }

 private:
  Member& member_;
  node::NodeCommunicator& parent_;
  Split& split_;
  Work exchange_;
  bool is_over_ = false;
};

SimulatedCluster::SimulatedCluster(const SimulatedClusterOptions& options)
    : options_(options),
      network_({options.network, node_of_members(options), options.faults, options.copied_bytes}) {
  const network::Topology topology(node_of_members(options), 0);
  NodeGroupOptions group;
  group.members = options.members;
  group.communication = options.communication;
  group.blocks_in_heap = false;
  group.any_thread = false;
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
      members_.emplace_back().parts.push_back(std::make_unique<Part>(
          std::make_unique<node::NodeCommunicator>(std::move(impl), options.communication), local_rank));
    }
  }
}

/// A call of a member that is dead, or in a run that was given up, is still in flight.
SimulatedCluster::~SimulatedCluster() {
  network_.end_virtual_time();
  for (const Member& member : members_) {
    for (const std::unique_ptr<Part>& part : member.parts) {
      if (!part->impl().idle()) part->communicator->abort(Unavailable("it was killed in the simulation"));
    }
  }
  leave_unfinished_groups();
}

/// Where a split has failed on some members, they never leave the group that others have made with them, and
/// memory would be kept until they do. Nobody looks at their blocks any more once all parts are gone.
void SimulatedCluster::leave_unfinished_groups() {
  std::unordered_set<const node::ControlBlock*> finished;
  for (const Member& member : members_) {
    for (const std::unique_ptr<Part>& part : member.parts) finished.insert(&part->block());
  }
  for (const Member& member : members_) {
    for (const std::unique_ptr<Part>& part : member.parts) {
      const node::NodeGroup& group = part->impl().group();
      for (int other = 0; other < group.size(); ++other) {
        if (!finished.contains(&group.control_block(other))) part->block().departures.fetch_add(1);
      }
    }
  }
  for (Member& member : members_) member.parts.clear();
  for (Member& member : members_) {
    for (const std::unique_ptr<Split>& split : member.splits) {
      if (split->split.block) static_cast<void>(split->split.block->take());
    }
  }
}

SimulatedCluster::Member& SimulatedCluster::member(int rank) {
  return members_[static_cast<std::size_t>(rank)];
}

Communicator& SimulatedCluster::communicator(int rank) { return *member(rank).parts.front()->communicator; }

Communicator* SimulatedCluster::group(int rank, int split) {
  const auto& splits = member(rank).splits;
  const auto number = static_cast<std::size_t>(split);
  return number < splits.size() ? splits[number]->group : nullptr;
}

Work SimulatedCluster::split(int rank, Communicator& parent, std::optional<int> color, int key) {
  COHORT_CHECK(options_.copied_bytes == SIZE_MAX);
  Member& member = this->member(rank);
  const auto found = std::ranges::find_if(
      member.parts, [&](const std::unique_ptr<Part>& part) { return part->communicator.get() == &parent; });
  COHORT_CHECK(found != member.parts.end());
  node::NodeCommunicator& communicator = *(*found)->communicator;
  member.splits.push_back(std::make_unique<Split>(Split{communicator.prepare_split(color, key)}));
  return Work(std::make_shared<SplitWork>(member, communicator, *member.splits.back()));
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
  const auto state = [&] { return std::pair(members_[index].rings(), progress.run.calls[index]); };
  const auto before = state();
  while (drive(rank, progress)) {
  }
  return state() != before || progress.run.errors[index];
}

/// Moves a member on. True if it has moved.
bool SimulatedCluster::drive(int rank, Progress& progress) {
  if (is_dead(rank)) return false;
  bool moved = false;
  bool is_idle = true;
  for (const std::unique_ptr<Part>& part : member(rank).parts) {
    node::NodeCommunicatorImpl& impl = part->impl();
    if (impl.idle()) continue;
    moved |= impl.try_advance();
    is_idle = is_idle && impl.idle();
  }
  // Asking a Work whether it is done would drive the member again, and give the core away.
  if (is_idle) moved |= progress.go_on(communicator(rank));
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
  const std::size_t members = members_.size();
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
