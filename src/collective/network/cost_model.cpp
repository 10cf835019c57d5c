#include "cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace cohort::network {
namespace {

struct Cost {
  double rounds = 0;         ///< alphas
  double bytes_sent = 0;     ///< betas
  double bytes_reduced = 0;  ///< gammas
};

// Parts in flight share the latency of their rounds. Moving messages and reducing them add up, since one
// thread does both: where the wire is fast, neither hides behind the other.
double seconds(const Cost& cost, std::size_t bytes, std::size_t bytes_of_part,
               const CostConstants& constants) {
  const double parts = std::ceil(static_cast<double>(bytes) / static_cast<double>(bytes_of_part));
  const double batches = std::ceil(parts / static_cast<double>(kPartsInFlight));
  return batches * cost.rounds * constants.latency_seconds + cost.bytes_sent * constants.seconds_per_byte +
         cost.bytes_reduced * constants.reduce_seconds_per_byte;
}

struct Sizes {
  double members;
  double doublings;  ///< rounds of the largest power of two
  double folds;      ///< 1 if some members sit out
  double share;      ///< (p-1)/p

  explicit Sizes(int size)
      : members(size),
        doublings(std::bit_width(static_cast<unsigned>(size)) - 1),
        folds(std::has_single_bit(static_cast<unsigned>(size)) ? 0 : 1),
        share((members - 1) / members) {}
};

Cost cost_of(AllReduceAlgorithm algorithm, const Sizes& size, double bytes) {
  switch (algorithm) {
    case AllReduceAlgorithm::kRecursiveDoubling:
      return {size.doublings + 2 * size.folds, (size.doublings + 2 * size.folds) * bytes,
              (size.doublings + size.folds) * bytes};
    case AllReduceAlgorithm::kRing:
      return {2 * (size.members - 1), 2 * size.share * bytes, size.share * bytes};
    case AllReduceAlgorithm::kHalvingDoubling:
      return {2 * (size.doublings + size.folds), (2 * size.share + 2 * size.folds) * bytes,
              (size.share + size.folds) * bytes};
    case AllReduceAlgorithm::kRankOrder:
    case AllReduceAlgorithm::kChain: break;
  }
  return {};
}

Cost cost_of(BroadcastAlgorithm algorithm, const Sizes& size, double bytes) {
  switch (algorithm) {
    case BroadcastAlgorithm::kBinomial: {
      const double rounds = size.doublings + size.folds;
      return {rounds, rounds * bytes, 0};
    }
    case BroadcastAlgorithm::kScatterAllGather: return {2 * (size.members - 1), 2 * size.share * bytes, 0};
  }
  return {};
}

template <class Algorithm>
double seconds(Algorithm algorithm, std::size_t bytes, int members, const CostConstants& constants) {
  const Cost cost = cost_of(algorithm, Sizes(members), static_cast<double>(bytes));
  return seconds(cost, std::max<std::size_t>(bytes, 1), part_bytes(algorithm, members, kMessageBytes),
                 constants);
}

/// The cheapest; of equal ones the first.
template <class Algorithm, std::size_t kCount>
Algorithm cheapest(const Algorithm (&candidates)[kCount], std::size_t bytes, int members,
                   const CostConstants& constants) {
  return *std::ranges::min_element(
      candidates, {}, [&](Algorithm candidate) { return seconds(candidate, bytes, members, constants); });
}

}  // namespace

CostConstants constants_of(const TuningTable& tuning) noexcept {
  return {tuning.value(Figure::kLatency), tuning.value(Figure::kSecondsPerByte),
          tuning.value(Figure::kReduceSecondsPerByte)};
}

bool rides_on_roll_call(std::size_t bytes, int members, int nodes, const CostConstants& constants) {
  const std::size_t limit = members > nodes ? kRidingBytesOnNodes : kRidingBytes;
  if (bytes * static_cast<std::size_t>(members) > limit) return false;
  const Sizes size(nodes);
  const double rounds = size.doublings + size.folds;
  const double bytes_more = (size.members - 1 - rounds) * static_cast<double>(bytes) * members / nodes;
  return bytes_more * constants.seconds_per_byte <= rounds * constants.latency_seconds;
}

AllReduceAlgorithm choose_all_reduce(std::size_t bytes, int members, const CostConstants& constants) {
  constexpr AllReduceAlgorithm kCandidates[] = {AllReduceAlgorithm::kRecursiveDoubling,
                                                AllReduceAlgorithm::kRing,
                                                AllReduceAlgorithm::kHalvingDoubling};
  return cheapest(kCandidates, bytes, members, constants);
}

AllReduceAlgorithm choose_ordered_all_reduce(std::size_t bytes, int nodes, int members_on_node,
                                             const CostConstants& constants) {
  const auto p = static_cast<double>(nodes);
  const auto m = static_cast<double>(members_on_node);
  const auto n = static_cast<double>(bytes);
  const Cost exchange{p, (m + 1) * (p - 1) / p * n, m * n};
  // A chain that is longer than there are parts in flight is never full.
  const double waits = std::max(1.0, (p - 1) / static_cast<double>(kPartsInFlight));
  const Cost chain{2 * (p - 1), (nodes == 2 ? 1 : 2 * waits) * n, n};
  const auto time_of = [&](const Cost& cost, AllReduceAlgorithm algorithm) {
    return seconds(cost, std::max<std::size_t>(bytes, 1), part_bytes(algorithm, nodes, kMessageBytes),
                   constants);
  };
  return time_of(chain, AllReduceAlgorithm::kChain) < time_of(exchange, AllReduceAlgorithm::kRankOrder)
             ? AllReduceAlgorithm::kChain
             : AllReduceAlgorithm::kRankOrder;
}

BroadcastAlgorithm choose_broadcast(std::size_t bytes, int members, const CostConstants& constants) {
  constexpr BroadcastAlgorithm kCandidates[] = {BroadcastAlgorithm::kBinomial,
                                                BroadcastAlgorithm::kScatterAllGather};
  return cheapest(kCandidates, bytes, members, constants);
}

std::vector<TuningFigure> all_reduce_crossovers(int nodes, const CostConstants& constants,
                                                TuningSource source) {
  const auto figure = [source](AllReduceAlgorithm algorithm, std::size_t bytes) -> TuningFigure {
    const auto from = static_cast<double>(bytes);
    switch (algorithm) {
      case AllReduceAlgorithm::kRing: return {"ring_bytes", "all-reduce: `ring` from here on", from, source};
      case AllReduceAlgorithm::kHalvingDoubling:
        return {"halving_doubling_bytes", "all-reduce: `halving_doubling` from here on", from, source};
      case AllReduceAlgorithm::kRecursiveDoubling:
      case AllReduceAlgorithm::kRankOrder:  // the last two are for reproducible sums, chosen elsewhere
      case AllReduceAlgorithm::kChain: break;
    }
    return {"recursive_doubling_bytes", "all-reduce: `recursive_doubling` from here on", from, source};
  };
  std::vector<TuningFigure> figures;
  std::optional<AllReduceAlgorithm> last;
  for (std::size_t bytes = 1; bytes <= std::size_t{1} << 30; bytes *= 2) {
    const AllReduceAlgorithm algorithm = choose_all_reduce(bytes, nodes, constants);
    if (algorithm != last) figures.push_back(figure(algorithm, bytes));
    last = algorithm;
  }
  return figures;
}

double built_in_seconds(const CallShape& call, const CostConstants& constants) {
  const Sizes size(call.nodes);
  const double bytes = static_cast<double>(call.bytes);
  const double rounds = size.members - 1;
  const auto pairwise = [&](double bytes_sent) {
    return rounds * constants.latency_seconds + bytes_sent * constants.seconds_per_byte;
  };
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
      return seconds(choose_all_reduce(call.bytes, call.nodes, constants), call.bytes, call.nodes, constants);
    case CollectiveKind::kBroadcast:
      return seconds(choose_broadcast(call.bytes, call.nodes, constants), call.bytes, call.nodes, constants);
    case CollectiveKind::kReduce: return 2 * pairwise(size.share * bytes);
    case CollectiveKind::kReduceScatter:
      return pairwise(size.share * bytes) + bytes * constants.reduce_seconds_per_byte;
    // A node receives what the members of the others bring, or sends what they take.
    default: return pairwise(size.share * bytes * call.members);
  }
}

std::size_t part_bytes(AllReduceAlgorithm algorithm, int members, std::size_t message_bytes) noexcept {
  switch (algorithm) {
    case AllReduceAlgorithm::kRecursiveDoubling:
    case AllReduceAlgorithm::kChain: return message_bytes;
    case AllReduceAlgorithm::kRing:
    case AllReduceAlgorithm::kRankOrder: return message_bytes * static_cast<std::size_t>(members);
    case AllReduceAlgorithm::kHalvingDoubling: return 2 * message_bytes;
  }
  return message_bytes;
}

std::size_t part_bytes(BroadcastAlgorithm algorithm, int members, std::size_t message_bytes) noexcept {
  return algorithm == BroadcastAlgorithm::kBinomial ? message_bytes
                                                    : message_bytes * static_cast<std::size_t>(members);
}

std::string_view to_string(AllReduceAlgorithm algorithm) noexcept {
  switch (algorithm) {
    case AllReduceAlgorithm::kRecursiveDoubling: return "two_level_recursive_doubling";
    case AllReduceAlgorithm::kRing: return "two_level_ring";
    case AllReduceAlgorithm::kHalvingDoubling: return "two_level_halving_doubling";
    case AllReduceAlgorithm::kRankOrder: return "two_level_rank_order";
    case AllReduceAlgorithm::kChain: return "two_level_chain";
  }
  return "unknown";
}

std::string_view to_string(BroadcastAlgorithm algorithm) noexcept {
  return algorithm == BroadcastAlgorithm::kBinomial ? "two_level_binomial" : "two_level_scatter_all_gather";
}

}  // namespace cohort::network
