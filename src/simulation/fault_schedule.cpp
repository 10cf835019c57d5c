#include "simulation/fault_schedule.h"

#include <algorithm>
#include <array>
#include <random>

#include <fmt/format.h>

namespace cohort::simulation {
namespace {

/// Virtual seconds.
constexpr double kTimeout = 0.2;
constexpr double kLongestRun = 10;
/// A delay below it is none that anybody may complain about.
constexpr double kHarmlessDelay = kTimeout / 50;

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
  fault.seconds = below(random, 2) == 0 ? kHarmlessDelay * 0.01 * below(random, 100) : 100;
  if (fault.kind == Fault::Kind::kPartition && fault.node == nodes - 1) --fault.node;
  return fault;
}

/// The buffers of one call, and what a right result is.
class CallData {
 public:
  CallData(const FaultSchedule::Call& call, int members) : call_(call), members_(members) {
    const std::int64_t all = call.elements * members;
    const bool has_long_input =
        call.kind == CollectiveKind::kReduceScatter || call.kind == CollectiveKind::kAllToAll;
    const bool has_long_output =
        call.kind == CollectiveKind::kAllGather || call.kind == CollectiveKind::kAllToAll;
    for (int rank = 0; rank < members; ++rank) {
      inputs_.push_back(Tensor::full({has_long_input ? all : call.elements}, DType::kFloat32, rank + 1.0));
      outputs_.push_back(Tensor::zeros({has_long_output ? all : call.elements}, DType::kFloat32));
    }
  }

  [[nodiscard]] Work start(Communicator& member) const {
    const auto rank = static_cast<std::size_t>(member.rank());
    const Tensor& input = inputs_[rank];
    const Tensor& output = outputs_[rank];
    switch (call_.kind) {
      case CollectiveKind::kAllReduce: return member.all_reduce_async(input, output, ReduceOp::kSum);
      case CollectiveKind::kReduce: return member.reduce_async(input, output, ReduceOp::kSum, kRoot);
      case CollectiveKind::kBroadcast: return member.broadcast_async(input, kRoot);
      case CollectiveKind::kAllGather: return member.all_gather_async(input, output);
      case CollectiveKind::kReduceScatter: return member.reduce_scatter_async(input, output, ReduceOp::kSum);
      case CollectiveKind::kAllToAll: return member.all_to_all_async(input, output);
      default: return member.barrier_async();
    }
  }

  [[nodiscard]] bool is_right(int rank) const {
    const double sum = members_ * (members_ + 1) / 2.0;
    const auto index = static_cast<std::size_t>(rank);
    const auto output = outputs_[index].span<float>();
    const auto all_are = [](std::span<const float> values, double expected) {
      return std::ranges::all_of(values, [&](float value) { return value == static_cast<float>(expected); });
    };
    switch (call_.kind) {
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kReduceScatter: return all_are(output, sum);
      case CollectiveKind::kReduce: return rank != kRoot || all_are(output, sum);
      case CollectiveKind::kBroadcast: return all_are(inputs_[index].span<float>(), kRoot + 1.0);
      case CollectiveKind::kAllGather:
      case CollectiveKind::kAllToAll:
        for (int from = 0; from < members_; ++from) {
          const auto block = static_cast<std::size_t>(call_.elements);
          if (!all_are(output.subspan(static_cast<std::size_t>(from) * block, block), from + 1.0))
            return false;
        }
        return true;
      default: return true;
    }
  }

 private:
  static constexpr int kRoot = 0;
  FaultSchedule::Call call_;
  int members_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
};

/// Whether the fault gives `member` reason for this error.
bool is_fair(const FaultSchedule& schedule, const Error& error, int member) {
  const Fault& fault = schedule.cluster.faults.front();
  const int blamed = error.origin().member;
  // All members answer each other, and yet data does not move.
  const bool blames_network =
      blamed < 0 && std::string_view(error.what()).find("network") != std::string_view::npos;
  const int node = blamed / schedule.cluster.members;
  const int own_node = member / schedule.cluster.members;
  switch (fault.kind) {
    case Fault::Kind::kKill: return blamed == fault.member;
    case Fault::Kind::kDelay:
      // Its own members ask the others in vain.
      return fault.seconds > kHarmlessDelay &&
             (own_node == fault.node || blames_network || (blamed >= 0 && node == fault.node));
    case Fault::Kind::kCut:
      return blames_network || (blamed >= 0 && (node == fault.node || node == fault.other));
    case Fault::Kind::kPartition: return blamed >= 0 && (node <= fault.node) != (own_node <= fault.node);
  }
  return false;
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
                                     .communication = {.timeout_seconds = kTimeout}},
                         .calls = {}};
  for (int calls = 1 + below(random, 5); calls > 0; --calls) {
    constexpr std::array<std::int64_t, 4> kElements{1, 100, 1000, 7500};
    schedule.calls.push_back({kKinds[random() % kKinds.size()], kElements[random() % kElements.size()]});
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
  text += fmt::format(" from {:.1f} us on;", fault.at_seconds * 1e6);
  for (const Call& call : calls) text += fmt::format(" {} of {}", to_string(call.kind), call.elements);
  return text;
}

std::string problem_of(const FaultSchedule& schedule) {
  SimulatedCluster cluster(schedule.cluster);
  std::vector<CallData> data;
  for (const FaultSchedule::Call& call : schedule.calls) data.emplace_back(call, cluster.size());
  const auto calls = static_cast<int>(data.size());
  try {
    const SimulatedRun run = cluster.run(
        calls + 1,
        [&](Communicator& member, int call) {
          return call < calls ? data[static_cast<std::size_t>(call)].start(member) : member.barrier_async();
        },
        kLongestRun);
    for (int rank = 0; rank < cluster.size(); ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      for (int call = 0; call < std::min(run.calls[index], calls); ++call) {
        if (!data[static_cast<std::size_t>(call)].is_right(rank))
          return fmt::format("member {} has a wrong result of call {}", rank, call);
      }
      const std::optional<Error>& error = run.errors[index];
      if (!error || is_fair(schedule, *error, rank)) continue;
      const int blamed = error->origin().member;
      // One that has ended its program cannot answer when others ask.
      if (blamed >= 0 && run.calls[static_cast<std::size_t>(blamed)] == calls + 1) continue;
      return fmt::format("member {} blames member {}: {}", rank, blamed, error->what());
    }
  } catch (const DeadlineExceeded& hang) {
    return hang.what();
  }
  return {};
}

}  // namespace cohort::simulation
