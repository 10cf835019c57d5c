#include "fault_schedule.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "collective/choice/tuning_figures.h"

namespace cohort::simulation {
namespace {

/// An eighth of what is usual, so that calls of few bytes go through all protocols and in several parts: most
/// of the time of a schedule goes into its data.
constexpr NetworkModel kShortMessages{.eager_bytes = std::size_t{1} << 10,
                                      .message_bytes = std::size_t{7} << 10};

constexpr std::array kKinds{CollectiveKind::kBarrier,   CollectiveKind::kAllReduce,
                            CollectiveKind::kReduce,    CollectiveKind::kBroadcast,
                            CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                            CollectiveKind::kAllToAll};

int below(std::mt19937_64& random, std::uint64_t end) { return static_cast<int>(random() % end); }

Fault random_fault(std::mt19937_64& random, int nodes, int members) {
  constexpr std::array kFaults{Fault::Kind::kDelay, Fault::Kind::kKill, Fault::Kind::kCut,
                               Fault::Kind::kPartition};
  const auto members_in_all = static_cast<std::uint64_t>(nodes) * static_cast<std::uint64_t>(members);
  Fault fault{.kind = kFaults[random() % kFaults.size()],
              .at_seconds = 1e-6 * below(random, 2000) * (below(random, 4) == 0 ? 1 : 0.1),
              .member = below(random, members_in_all),
              .node = below(random, static_cast<std::uint64_t>(nodes))};
  fault.other = (fault.node + 1 + below(random, static_cast<std::uint64_t>(nodes - 1))) % nodes;
  fault.seconds = below(random, 2) == 0 ? FaultSchedule::kHarmlessDelay * 0.01 * below(random, 100) : 100;
  if (fault.kind == Fault::Kind::kPartition && fault.node == nodes - 1) --fault.node;
  return fault;
}

/// By all members, or by the groups of an earlier split.
int random_callers(std::mt19937_64& random, int splits) {
  const int choice = below(random, 3 * static_cast<std::uint64_t>(splits) + 1);
  return choice == 0 ? FaultSchedule::kAll : choice % splits;
}

FaultSchedule::Call random_call(std::mt19937_64& random, int splits) {
  constexpr std::array<std::int64_t, 4> kElements{1, 100, 1000, 7500};
  return {.kind = kKinds[random() % kKinds.size()],
          .elements = kElements[random() % kElements.size()],
          .of = random_callers(random, splits)};
}

/// Into groups of one node or over several, of neighbours or of every second or third.
FaultSchedule::Call random_split(std::mt19937_64& random, int splits, int nodes, int members) {
  const std::array by{1, members, 2 * members};
  const std::array colors{2, 3, nodes * members};
  return {.kind = CollectiveKind::kSplit,
          .of = random_callers(random, splits),
          .division = {.by = by[random() % by.size()], .colors = colors[random() % colors.size()]}};
}

}  // namespace

FaultSchedule fault_schedule(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const int nodes = 2 + below(random, 7);
  const int members = 1 + below(random, 3);
  FaultSchedule schedule{.cluster = {.nodes = nodes,
                                     .members = members,
                                     .network = kShortMessages,
                                     .faults = {random_fault(random, nodes, members)},
                                     .communication = {.timeout_seconds = FaultSchedule::kTimeout}},
                         .calls = {}};
  schedule.probes = below(random, 4) == 0;
  int calls = 1 + below(random, 5);
  int splits = 0;
  const int until_split = below(random, 2) == 0 ? below(random, static_cast<std::uint64_t>(calls)) : calls;
  for (int call = 0; call < calls; ++call) {
    if (call == until_split || (splits == 1 && below(random, 8) == 0))
      schedule.calls.push_back(random_split(random, splits++, nodes, members));
    schedule.calls.push_back(random_call(random, splits));
  }
  return schedule;
}

std::string FaultSchedule::describe() const {
  const Fault& fault = cluster.faults.front();
  std::string text = fmt::format("{} nodes of {}; ", cluster.nodes, cluster.members);
  switch (fault.kind) {
    case Fault::Kind::kDelay:
      text += fmt::format("node {} is late by {} s", fault.node, fault.seconds);
      break;
    case Fault::Kind::kKill: text += fmt::format("member {} is killed", fault.member); break;
    case Fault::Kind::kCut:
      text += fmt::format("no link between nodes {} and {}", fault.node, fault.other);
      break;
    case Fault::Kind::kPartition: text += fmt::format("nodes up to {} are cut off", fault.node); break;
  }
  text +=
      fmt::format(" from {:.1f} us on;{}", fault.at_seconds * 1e6, probes ? " the network is probed;" : "");
  for (const Call& call : calls) {
    const std::string by = call.of == kAll ? "" : fmt::format(" by groups of split {}", call.of);
    text += call.kind == CollectiveKind::kSplit
                ? fmt::format(" split{} by {} into {};", by, call.division.by, call.division.colors)
                : fmt::format(" {} of {}{};", to_string(call.kind), call.elements, by);
  }
  return text;
}

// Carries out a job in which something goes wrong, and judges what has come of it.

namespace {

constexpr double kLongestRun = 10;  ///< virtual seconds

/// The groups into which a split has divided the members, which are numbered as in the cluster.
class Groups {
 public:
  using Members = std::vector<int>;

  /// One group of all.
  explicit Groups(int members) : group_of_(static_cast<std::size_t>(members)), groups_(1) {
    for (int rank = 0; rank < members; ++rank) groups_.front().push_back(rank);
  }
  Groups(const Groups& parents, const FaultSchedule::Division& division)
      : group_of_(parents.group_of_.size()) {
    std::map<std::pair<std::size_t, int>, std::size_t> numbers;
    for (std::size_t rank = 0; rank < group_of_.size(); ++rank) {
      const auto member = static_cast<int>(rank);
      const auto number =
          numbers.try_emplace({parents.group_of_[rank], division.color_of(member)}, numbers.size())
              .first->second;
      if (number == groups_.size()) groups_.emplace_back();
      groups_[number].push_back(member);
      group_of_[rank] = number;
    }
  }

  [[nodiscard]] const Members& group_of(int member) const {
    return groups_[group_of_[static_cast<std::size_t>(member)]];
  }

 private:
  std::vector<std::size_t> group_of_;  ///< by member
  std::vector<Members> groups_;
};

/// The buffers of one call, and what a right result is.
class CallData {
 public:
  CallData(const FaultSchedule::Call& call, const Groups& groups, int members)
      : call_(call), groups_(groups) {
    const bool has_long_input =
        call.kind == CollectiveKind::kReduceScatter || call.kind == CollectiveKind::kAllToAll;
    const bool has_long_output =
        call.kind == CollectiveKind::kAllGather || call.kind == CollectiveKind::kAllToAll;
    for (int member = 0; member < members; ++member) {
      const std::int64_t all = call.elements * static_cast<std::int64_t>(groups.group_of(member).size());
      inputs_.push_back(
          Tensor::full({has_long_input ? all : call.elements}, DType::kFloat32, value_of(member)));
      outputs_.push_back(Tensor::zeros({has_long_output ? all : call.elements}, DType::kFloat32));
    }
  }

  /// `caller` is one of the communicators of `member`.
  [[nodiscard]] Work start(Communicator& caller, int member) const {
    const Tensor& input = inputs_[static_cast<std::size_t>(member)];
    const Tensor& output = outputs_[static_cast<std::size_t>(member)];
    switch (call_.kind) {
      case CollectiveKind::kAllReduce: return caller.all_reduce_async(input, output, ReduceOp::kSum);
      case CollectiveKind::kReduce: return caller.reduce_async(input, output, ReduceOp::kSum, kRoot);
      case CollectiveKind::kBroadcast: return caller.broadcast_async(input, kRoot);
      case CollectiveKind::kAllGather: return caller.all_gather_async(input, output);
      case CollectiveKind::kReduceScatter: return caller.reduce_scatter_async(input, output, ReduceOp::kSum);
      case CollectiveKind::kAllToAll: return caller.all_to_all_async(input, output);
      default: return caller.barrier_async();
    }
  }

  [[nodiscard]] bool is_right(int member) const {
    const Groups::Members& group = groups_.group_of(member);
    const auto index = static_cast<std::size_t>(member);
    const auto output = outputs_[index].span<float>();
    const auto all_are = [](std::span<const float> values, double expected) {
      return std::ranges::all_of(values, [&](float value) { return value == static_cast<float>(expected); });
    };
    double sum = 0;
    for (const int other : group) sum += value_of(other);
    switch (call_.kind) {
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kReduceScatter: return all_are(output, sum);
      case CollectiveKind::kReduce: return member != group[kRoot] || all_are(output, sum);
      case CollectiveKind::kBroadcast: return all_are(inputs_[index].span<float>(), value_of(group[kRoot]));
      case CollectiveKind::kAllGather:
      case CollectiveKind::kAllToAll:
        for (std::size_t from = 0; from < group.size(); ++from) {
          const auto block = static_cast<std::size_t>(call_.elements);
          if (!all_are(output.subspan(from * block, block), value_of(group[from]))) return false;
        }
        return true;
      default: return true;
    }
  }

 private:
  static constexpr int kRoot = 0;
  static double value_of(int member) { return member + 1.0; }

  FaultSchedule::Call call_;
  const Groups& groups_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
};

/// Whether the fault gives `member` reason to blame `blamed`, or nobody where that is negative.
bool is_fair(const FaultSchedule& schedule, const Error& error, int member, int blamed) {
  const Fault& fault = schedule.cluster.faults.front();
  // All members answer each other, and yet data does not move.
  const bool blames_network =
      blamed < 0 && std::string_view(error.what()).find("network") != std::string_view::npos;
  const int node = blamed / schedule.cluster.members;
  const int own_node = member / schedule.cluster.members;
  switch (fault.kind) {
    case Fault::Kind::kKill: return blamed == fault.member;
    case Fault::Kind::kDelay:
      // Its own members ask the others in vain.
      return fault.seconds > FaultSchedule::kHarmlessDelay &&
             (own_node == fault.node || blames_network || (blamed >= 0 && node == fault.node));
    case Fault::Kind::kCut:
      return blames_network || (blamed >= 0 && (node == fault.node || node == fault.other));
    case Fault::Kind::kPartition: return blamed >= 0 && (node <= fault.node) != (own_node <= fault.node);
  }
  return false;
}

/// A schedule that is carried out.
class Job {
 public:
  explicit Job(const FaultSchedule& schedule) : schedule_(schedule), cluster_(schedule.cluster) {
    groups_.emplace_back(cluster_.size());
    for (const FaultSchedule::Call& call : schedule.calls) {
      const Groups& callers = groups_of(call);
      data_.emplace_back(call, callers, cluster_.size());
      if (call.kind == CollectiveKind::kSplit) groups_.emplace_back(callers, call.division);
    }
  }

  [[nodiscard]] std::string problem() {
    settle_tuning();
    run_ = cluster_.run(
        calls() + 1, [this](Communicator& member, int call) { return start(member, call); }, kLongestRun);
    for (int member = 0; member < cluster_.size(); ++member) {
      for (int call = 0; call < std::min(ended(member), calls()); ++call) {
        if (!data_[static_cast<std::size_t>(call)].is_right(member))
          return fmt::format("member {} has a wrong result of call {}", member, call);
      }
      if (std::string problem = problem_of_error(member); !problem.empty()) return problem;
    }
    return {};
  }

 private:
  /// What comes of a job must not depend on those before it.
  void settle_tuning() const {
    TuningStore& store = TuningStore::of_this_process();
    store.forget();
    if (schedule_.probes) return;
    for (int nodes = 2; nodes <= schedule_.cluster.nodes; ++nodes) {
      for (int members = nodes; members <= cluster_.size(); ++members)
        store.keep(shape_of_network(nodes, members), TuningTable());
    }
  }

  [[nodiscard]] int calls() const noexcept { return static_cast<int>(schedule_.calls.size()); }
  /// How many calls the member has ended without an error, and so the number of that which ended with one.
  [[nodiscard]] int ended(int member) const { return run_.calls[static_cast<std::size_t>(member)]; }
  /// Who makes the call: the number of a split, or all.
  [[nodiscard]] int callers_of(int call) const {
    return call < calls() ? schedule_.calls[static_cast<std::size_t>(call)].of : FaultSchedule::kAll;
  }
  [[nodiscard]] const Groups& groups_of(const FaultSchedule::Call& call) const {
    return groups_[static_cast<std::size_t>(call.of - FaultSchedule::kAll)];
  }

  [[nodiscard]] Work start(Communicator& member, int number) {
    if (number == calls()) return member.barrier_async();
    const FaultSchedule::Call& call = schedule_.calls[static_cast<std::size_t>(number)];
    const int rank = member.rank();
    Communicator& caller = call.of == FaultSchedule::kAll ? member : *cluster_.group(rank, call.of);
    if (call.kind == CollectiveKind::kSplit)
      return cluster_.split(rank, caller, call.division.color_of(rank));
    return data_[static_cast<std::size_t>(number)].start(caller, rank);
  }

  /// The number in the cluster of a member of the communicator in which the member's error came.
  [[nodiscard]] int in_cluster(int rank, int member) const {
    const Groups& groups = groups_[static_cast<std::size_t>(callers_of(ended(member)) - FaultSchedule::kAll)];
    return groups.group_of(member)[static_cast<std::size_t>(rank)];
  }
  /// Whom the member's error blames; negative: nobody.
  [[nodiscard]] int blamed_by(int member) const {
    const int blamed = run_.errors[static_cast<std::size_t>(member)]->origin().member;
    return blamed < 0 ? blamed : in_cluster(blamed, member);
  }
  /// Empty where the member has none, or a fair one.
  [[nodiscard]] std::string problem_of_error(int member) const {
    int accuser = member;
    for (int steps = 0; steps < cluster_.size(); ++steps) {
      const std::optional<Error>& error = run_.errors[static_cast<std::size_t>(accuser)];
      if (!error) return {};
      const int blamed = blamed_by(accuser);
      if (is_fair(schedule_, *error, accuser, blamed)) return {};
      // One that has ended its program cannot answer when others ask.
      if (blamed >= 0 && ended(blamed) == calls() + 1) return {};
      if (blamed < 0 || callers_of(ended(blamed)) == callers_of(ended(accuser)))
        return fmt::format("member {} blames member {}: {}", accuser, blamed, error->what());
      accuser = blamed;
    }
    return fmt::format("member {} blames one that blames another, and so on in a circle", member);
  }

  const FaultSchedule& schedule_;
  SimulatedCluster cluster_;
  std::deque<Groups> groups_;  ///< of all members, and by split
  std::deque<CallData> data_;  ///< by call
  SimulatedRun run_;
};

}  // namespace

std::string problem_of(const FaultSchedule& schedule) {
  try {
    return Job(schedule).problem();
  } catch (const DeadlineExceeded& hang) {
    return hang.what();
  }
}

}  // namespace cohort::simulation
