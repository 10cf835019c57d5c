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

// Parts in flight share the latency of their rounds. Moving messages and reducing them add up, since one
// thread does both: where the network is fast, neither hides the other.
double seconds(const LaneCost& cost, std::size_t bytes, std::size_t bytes_of_part,
               const CostConstants& constants) {
  const double parts = std::ceil(static_cast<double>(bytes) / static_cast<double>(bytes_of_part));
  const double batches = std::ceil(parts / static_cast<double>(kPartsInFlight));
  return batches * cost.rounds * constants.latency_seconds + cost.bytes_sent * constants.seconds_per_byte +
         cost.bytes_reduced * constants.reduce_seconds_per_byte;
}

double seconds(const LaneAlgorithm& algorithm, std::size_t bytes, const LaneShape& lane,
               const CostConstants& constants) {
  return seconds(algorithm.cost(lane, static_cast<double>(bytes)), std::max<std::size_t>(bytes, 1),
                 algorithm.part_bytes(static_cast<int>(lane.members), kMessageBytes), constants);
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
    const double expected = seconds(*candidate, bytes, lane, constants);
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

/// The messages of a pairwise call are under way together, so that each further one costs a part of a
/// latency: over four hosts two rounds took 1.0 to 1.17 times as long as three such messages.
double pairwise_latencies(const LaneShape& lane) {
  constexpr double kOfFurtherMessage = 0.25;
  return 1 + (lane.members - 2) * kOfFurtherMessage;
}

std::optional<BlockCosts> block_costs(CollectiveKind kind, double bytes, const LaneShape& lane) {
  const double rounds = lane.doublings + lane.folds;
  const double sent = lane.ring_fraction * bytes;
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kSplit:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      return BlockCosts{{rounds, sent, 2 * bytes}, {pairwise_latencies(lane), sent, 0}};
    case CollectiveKind::kReduceScatter:
      return BlockCosts{{rounds, sent, 2 * bytes + sent}, {pairwise_latencies(lane), sent, bytes}};
    case CollectiveKind::kAllToAll:
      return BlockCosts{{rounds, rounds * bytes / 2, 2 * bytes}, {pairwise_latencies(lane), sent, 0}};
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
double seconds_at_once(const LaneCost& cost, const CostConstants& constants) {
  return seconds(cost, 1, 1, constants);
}

/// The seconds of a call in few rounds, where it prefers them.
std::optional<double> few_rounds_seconds(CollectiveKind kind, std::size_t block_bytes, int members, int nodes,
                                         const CostConstants& constants) {
  const double of_all = static_cast<double>(block_bytes) * members;
  const double bytes = kind == CollectiveKind::kAllToAll ? of_all * members / nodes : of_all;
  const std::optional<BlockCosts> costs = block_costs(kind, bytes, LaneShape(nodes));
  if (!costs) return std::nullopt;
  const double expected = seconds_at_once(costs->few_rounds, constants);
  if (expected >= seconds_at_once(costs->pairwise, constants)) return std::nullopt;
  return expected;
}

}  // namespace

bool prefers_few_rounds(CollectiveKind kind, std::size_t block_bytes, int members, int nodes,
                        const CostConstants& constants) {
  return few_rounds_seconds(kind, block_bytes, members, nodes, constants).has_value();
}

double built_in_seconds(const CallShape& call, const CostConstants& constants) {
  const std::size_t block_bytes = call.elements * size_of(call.dtype);
  if (!call.uneven) {
    const std::optional<double> few_rounds =
        few_rounds_seconds(call.kind, block_bytes, call.members, call.nodes, constants);
    if (few_rounds) return *few_rounds;
  }
  const LaneShape lane(call.nodes);
  const double bytes = static_cast<double>(call.bytes);
  const auto pairwise = [&](double bytes_sent) {
    return pairwise_latencies(lane) * constants.latency_seconds + bytes_sent * constants.seconds_per_byte;
  };
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kBroadcast:
      return seconds(choose_algorithm(call.kind, call.bytes, lane, constants), call.bytes, lane, constants);
    case CollectiveKind::kReduce: return 2 * pairwise(lane.ring_fraction * bytes);
    case CollectiveKind::kReduceScatter:
      return pairwise(lane.ring_fraction * bytes) + bytes * constants.reduce_seconds_per_byte;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kSplit:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: break;
  }
  // A node receives what the members of other nodes contribute, or sends what they get.
  return pairwise(lane.ring_fraction * bytes * call.members);
}

}  // namespace cohort::network
