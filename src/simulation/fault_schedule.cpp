#include "simulation/fault_schedule.h"

#include <array>
#include <random>

#include <fmt/format.h>

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

}  // namespace cohort::simulation
