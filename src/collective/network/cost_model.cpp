#include "cost_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort::network {
namespace {

/// A network: its constants, and the longest message that is sent before its receive is known.
struct Network {
  CostConstants constants;
  std::size_t eager_bytes = SIZE_MAX;

  [[nodiscard]] double latency_of(double message_bytes) const noexcept {
    const bool is_eager = message_bytes <= static_cast<double>(eager_bytes);
    return (is_eager ? 1 : 3) * constants.latency_seconds;
  }
};

/// Of the messages of a part, one after the other.
double latencies(const LaneCost& cost, double bytes_of_part, const Network& network) {
  if (cost.rounds_of_each_length == 0) return cost.rounds * network.latency_of(bytes_of_part / cost.rounds);
  double sum = 0;
  double message = bytes_of_part / (2 * cost.rounds_of_each_length);
  for (double rounds = cost.rounds; rounds > 0; rounds -= cost.rounds_of_each_length) {
    sum += std::min<double>(rounds, cost.rounds_of_each_length) * network.latency_of(message);
    message /= 2;
  }
  return sum;
}

// Parts in flight share the latency of their rounds. Moving messages and reducing them add up, since one
// thread does both: where the network is fast, neither hides the other.
double seconds(const LaneCost& cost, std::size_t bytes, std::size_t bytes_of_part, const Network& network) {
  const CostConstants& constants = network.constants;
  const double parts = std::ceil(static_cast<double>(bytes) / static_cast<double>(bytes_of_part));
  const double batches = std::ceil(parts / static_cast<double>(kPartsInFlight));
  return batches * latencies(cost, cost.bytes_sent / parts, network) +
         cost.bytes_sent * constants.seconds_per_byte +
         cost.bytes_reduced * constants.reduce_seconds_per_byte;
}

double seconds(const LaneAlgorithm& algorithm, std::size_t bytes, const LaneShape& lane,
               const Network& network) {
  return seconds(algorithm.cost(lane, static_cast<double>(bytes)), std::max<std::size_t>(bytes, 1),
                 algorithm.part_bytes(static_cast<int>(lane.members), kMessageBytes), network);
}

struct CrossoverText {
  std::string name;
  std::string text;
};

/// Name and text of the figure about an all-reduce, which only points to them.
const CrossoverText& crossover_text(const LaneAlgorithm& algorithm) {
  static const auto* const texts = [] {
    auto* all = new std::map<const LaneAlgorithm*, CrossoverText>;
    for (const LaneAlgorithm* const each : lane_algorithms()) {
      (*all)[each] = {fmt::format("{}_bytes", each->setting()),
                      fmt::format("all-reduce: `{}` from here on", each->setting())};
    }
    return all;
  }();
  return texts->at(&algorithm);
}

}  // namespace

CostConstants constants_of(const TuningTable& tuning) noexcept {
  return {tuning.value(Figure::kLatency), tuning.value(Figure::kSecondsPerByte),
          tuning.value(Figure::kReduceSecondsPerByte)};
}

int lanes_of(const TuningTable& tuning) noexcept {
  return static_cast<int>(std::clamp(tuning.value(Figure::kLanes), 1.0, 1e6));
}

CostConstants shared_by_lanes(CostConstants constants, int lanes) noexcept {
  constants.seconds_per_byte *= lanes;
  return constants;
}

bool fits_roll_call(std::size_t bytes, int members, int nodes, const CostConstants& constants) {
  const std::size_t limit = members > nodes ? kPiggybackBytesOnNodes : kPiggybackBytes;
  if (bytes * static_cast<std::size_t>(members) > limit) return false;
  const LaneShape lane(nodes);
  const double rounds = lane.doublings + lane.folds;
  const double bytes_more = (lane.members - 1 - rounds) * static_cast<double>(bytes) * members / nodes;
  return bytes_more * constants.seconds_per_byte <= rounds * constants.latency_seconds;
}

const LaneAlgorithm& choose_algorithm(CollectiveKind kind, std::size_t bytes, const LaneShape& lane,
                                      const CostConstants& constants, Order order) {
  const LaneAlgorithm* best = nullptr;
  double least = 0;
  for (const LaneAlgorithm* const candidate : lane_algorithms()) {
    if (candidate->kind != kind || candidate->in_rank_order != (order == Order::kRanks)) continue;
    const double expected = seconds(*candidate, bytes, lane, {constants});
    if (best != nullptr && expected >= least) continue;
    best = candidate;
    least = expected;
  }
  COHORT_CHECK(best != nullptr);
  return *best;
}

std::vector<TuningFigure> all_reduce_crossovers(int nodes, const CostConstants& constants,
                                                TuningSource source) {
  const LaneShape lane(nodes);
  std::vector<TuningFigure> figures;
  const LaneAlgorithm* last = nullptr;
  for (std::size_t bytes = 1; bytes <= std::size_t{1} << 30; bytes *= 2) {
    const LaneAlgorithm& algorithm = choose_algorithm(CollectiveKind::kAllReduce, bytes, lane, constants);
    if (&algorithm != last) {
      const CrossoverText& text = crossover_text(algorithm);
      figures.push_back({text.name, text.text, static_cast<double>(bytes), source});
    }
    last = &algorithm;
  }
  return figures;
}

namespace {

/// What the algorithms of log2 p rounds cost, and the pairwise ones, for n bytes: of all members' blocks, or,
/// in an all-to-all, of what one node's members have for all. With few rounds, the data of a node passes one
/// of its members, which copies it twice.
struct BlockCosts {
  LaneCost few_rounds;
  LaneCost pairwise;
};

constexpr double kOfFurtherMessage = 0.25;

/// The same where the members of a node share its link: of each message on that.
constexpr double kOfMessageOnLink = 0.1;

/// What it takes that a node's members bring their data to one of them and get its data from there, in
/// latencies.
constexpr double kMeetingsOfNode = 0.25;

/// The short messages of a pairwise call are under way together, so that each further one costs a part of a
/// latency: over four hosts two rounds took 1.0 to 1.17 times as long as three such messages. Members send to
/// one member of each other node, or, where each has a block for each, to all of them; `members` of a node.
double pairwise_latencies(CollectiveKind kind, const LaneShape& lane, double members) {
  const bool goes_to_all = kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter ||
                           kind == CollectiveKind::kAllToAll;
  const double messages = (lane.members - 1) * (goes_to_all ? members : 1);
  return 1 + (messages - 1) * std::max(kOfFurtherMessage, members * kOfMessageOnLink);
}

/// `members`: of a node.
std::optional<BlockCosts> block_costs(CollectiveKind kind, double bytes, const LaneShape& lane,
                                      double members) {
  const double sent = lane.ring_fraction * bytes;
  const double doublings = lane.doublings + lane.folds;
  const double rounds = doublings + (members > 1 ? kMeetingsOfNode : 0);
  const double pairwise = pairwise_latencies(kind, lane, members);
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kSplit:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter: return BlockCosts{{rounds, sent, 2 * bytes, 1}, {pairwise, sent, 0}};
    case CollectiveKind::kReduceScatter:
      return BlockCosts{{rounds, sent, 2 * bytes + sent, 1}, {pairwise, sent, bytes}};
    case CollectiveKind::kAllToAll:
      return BlockCosts{{rounds, doublings * bytes / 2, 2 * bytes}, {pairwise, sent, 0}};
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: break;
  }
  return std::nullopt;
}

/// All bytes go at once, not in parts.
double seconds_at_once(const LaneCost& cost, const Network& network) { return seconds(cost, 1, 1, network); }

/// What a call in few rounds costs, where it prefers them.
std::optional<LaneCost> few_rounds_cost(CollectiveKind kind, std::size_t block_bytes, int members, int nodes,
                                        const CostConstants& constants) {
  const double of_all = static_cast<double>(block_bytes) * members;
  const double bytes = kind == CollectiveKind::kAllToAll ? of_all * members / nodes : of_all;
  const std::optional<BlockCosts> costs =
      block_costs(kind, bytes, LaneShape(nodes), static_cast<double>(members) / nodes);
  if (!costs) return std::nullopt;
  if (seconds_at_once(costs->few_rounds, {constants}) >= seconds_at_once(costs->pairwise, {constants}))
    return std::nullopt;
  return costs->few_rounds;
}

/// By one lane's algorithm; the lanes' shares go side by side.
double lanes_seconds(const CallShape& call, const LaneShape& lane, const Network& network) {
  const int on_node = std::max(call.members / call.nodes, 1);
  const int lanes = call.lanes > 0 ? std::min(call.lanes, on_node) : on_node;
  const std::size_t share = call.bytes / static_cast<std::size_t>(lanes);
  const Network of_lane{shared_by_lanes(network.constants, lanes), network.eager_bytes};
  return seconds(choose_algorithm(call.kind, share, lane, of_lane.constants), share, lane, of_lane);
}

/// By messages from member to member; the cost is that of a node.
LaneCost pairwise_cost(const CallShape& call, const LaneShape& lane) {
  const auto bytes = static_cast<double>(call.bytes);
  const double latencies =
      pairwise_latencies(call.kind, lane, static_cast<double>(call.members) / call.nodes);
  const double of_other_nodes = lane.ring_fraction * bytes;
  switch (call.kind) {
    case CollectiveKind::kReduceScatter: return {latencies, of_other_nodes, bytes};
    case CollectiveKind::kScatter: return {latencies, of_other_nodes, 0};  // its root contributes all
    case CollectiveKind::kAllToAll: return {latencies, of_other_nodes * call.members / call.nodes, 0};
    default: return {latencies, of_other_nodes * call.members, 0};
  }
}

double roll_call_seconds(std::size_t bytes, int members, const LaneShape& lane,
                         const CostConstants& constants) {
  return (lane.doublings + lane.folds) * constants.latency_seconds +
         lane.ring_fraction * static_cast<double>(bytes) * members * constants.seconds_per_byte;
}

/// What comes after the roll call.
double movement_seconds(const CallShape& call, const LaneShape& lane, const Network& network) {
  if (!call.uneven) {
    const std::size_t block_bytes = call.elements * size_of(call.dtype);
    const std::optional<LaneCost> few_rounds =
        few_rounds_cost(call.kind, block_bytes, call.members, call.nodes, network.constants);
    if (few_rounds) return seconds_at_once(*few_rounds, network);
  }
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce:
    case CollectiveKind::kBroadcast: return lanes_seconds(call, lane, network);
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kSplit:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: break;
  }
  return seconds_at_once(pairwise_cost(call, lane), network);
}

}  // namespace

bool prefers_few_rounds(CollectiveKind kind, std::size_t block_bytes, int members, int nodes,
                        const CostConstants& constants) {
  return few_rounds_cost(kind, block_bytes, members, nodes, constants).has_value();
}

double built_in_seconds(const CallShape& call, const CostConstants& constants) {
  const LaneShape lane(call.nodes);
  if (fits_roll_call(call.bytes, call.members, call.nodes, constants))
    return roll_call_seconds(call.bytes, call.members, lane, constants);
  return movement_seconds(call, lane, {constants});
}

double whole_call_seconds(const CallShape& call, const CostConstants& constants, std::size_t eager_bytes) {
  const LaneShape lane(call.nodes);
  if (fits_roll_call(call.bytes, call.members, call.nodes, constants))
    return roll_call_seconds(call.bytes, call.members, lane, constants);
  return roll_call_seconds(0, call.members, lane, constants) +
         movement_seconds(call, lane, {constants, eager_bytes});
}

}  // namespace cohort::network
