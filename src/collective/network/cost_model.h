// Which algorithm carries a part of the data between nodes: the one that the cost
// formulas beside the algorithms expect to be the fastest. A pure function of what all
// members know alike, so all choose alike.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <cohort/collective/algorithm.h>

#include "collective/choice/tuning_table.h"

namespace cohort::network {

/// What the network and the processor do, before a probe has found out. Messages are polled for at both
/// ends; bytes are those of one node's wire.
inline constexpr CostConstants kBuiltInConstants{
    .latency_seconds = 6e-6, .seconds_per_byte = 0.8e-9, .reduce_seconds_per_byte = 0.1e-9};

[[nodiscard]] CostConstants constants_of(const TuningTable& tuning) noexcept;

/// Most bytes of all contributions of all members together that ride on the roll call: where nodes have
/// several members, a member's slot holds them; elsewhere, copying costs more than a round trip beyond.
inline constexpr std::size_t kPiggybackBytesOnNodes = std::size_t{8} << 10;
inline constexpr std::size_t kPiggybackBytes = std::size_t{64} << 10;

/// Whether contributions of `bytes` per member ride: what the gathering of all of them moves more than an
/// exchange of sums must cost less than the rounds that it saves.
[[nodiscard]] bool fits_roll_call(std::size_t bytes, int members, int nodes, const CostConstants& constants);

/// Longest message of a long collective, as the costs assume it; the transport says what it is.
inline constexpr std::size_t kMessageBytes = std::size_t{56} << 10;

/// Parts of a long collective that are on their way together, so that both directions of the wire stay
/// busy while others are reduced.
inline constexpr std::size_t kPartsInFlight = 8;

/// Parts of a lane's share of a segment: the members of a node meet twice per segment.
inline constexpr std::size_t kPartsPerMeeting = 4;

/// The last two combine the members in the order of their ranks.
enum class AllReduceAlgorithm { kRecursiveDoubling, kRing, kHalvingDoubling, kRankOrder, kChain };
enum class BroadcastAlgorithm { kBinomial, kScatterAllGather };

[[nodiscard]] AllReduceAlgorithm choose_all_reduce(std::size_t bytes, int members,
                                                   const CostConstants& constants);
/// One that combines the members in the order of their ranks, which follow the nodes.
[[nodiscard]] AllReduceAlgorithm choose_ordered_all_reduce(std::size_t bytes, int nodes, int members_on_node,
                                                           const CostConstants& constants);
[[nodiscard]] BroadcastAlgorithm choose_broadcast(std::size_t bytes, int members,
                                                  const CostConstants& constants);

/// From which bytes of a lane on each algorithm of an all-reduce is chosen, in powers of two.
[[nodiscard]] std::vector<TuningFigure> all_reduce_crossovers(int nodes, const CostConstants& constants,
                                                              TuningSource source);

/// How long Cohort's own algorithm takes for a call among members of several nodes.
[[nodiscard]] double built_in_seconds(const CallShape& call, const CostConstants& constants);

/// Bytes of a part, such that its messages have at most `message_bytes`.
[[nodiscard]] std::size_t part_bytes(AllReduceAlgorithm algorithm, int members,
                                     std::size_t message_bytes) noexcept;
[[nodiscard]] std::size_t part_bytes(BroadcastAlgorithm algorithm, int members,
                                     std::size_t message_bytes) noexcept;

/// As benchmarks name it, for example `two_level_ring`.
[[nodiscard]] std::string_view to_string(AllReduceAlgorithm algorithm) noexcept;
[[nodiscard]] std::string_view to_string(BroadcastAlgorithm algorithm) noexcept;

}  // namespace cohort::network
