// Which algorithm moves a part of the data between nodes: the one that the cost formulas beside the
// algorithms expect to be the fastest. A pure function of what all members know, so all choose alike. And the
// probe, which measures the constants of the formulas.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <cohort/collective/algorithm.h>
#include <cohort/collective/task.h>

#include "collective/choice/tuning_figures.h"
#include "lane.h"
#include "lane_algorithms.h"
#include "topology.h"

namespace cohort::network {

/// The speed of the network and the processor, before a probe has measured it.
/// Messages are polled for at both ends; bytes are those of one node's link.
inline constexpr CostConstants kBuiltInConstants{
    .latency_seconds = 6e-6, .seconds_per_byte = 0.8e-9, .reduce_seconds_per_byte = 0.1e-9};

/// How many lanes carry long calls, at most. With so many, a member's work on its share of a sum costs less
/// than a tenth of the time that the bytes take on a link of 100 Gbit/s.
inline constexpr int kBuiltInLanes = 8;

[[nodiscard]] CostConstants constants_of(const TuningTable& tuning) noexcept;

/// The most lanes that are to carry long calls.
[[nodiscard]] int lanes_of(const TuningTable& tuning) noexcept;

/// As each of a node's lanes sees the network, while all of them are busy: they share the node's link, and
/// reduce side by side.
[[nodiscard]] CostConstants shared_by_lanes(CostConstants constants, int lanes) noexcept;

/// The most bytes that piggyback on a roll call, summed over the contributions of all members. Where nodes
/// have several members, all of them must fit in one slot; with one member per node, copying more bytes than
/// this costs more than a round trip.
inline constexpr std::size_t kPiggybackBytesOnNodes = std::size_t{8} << 10;
inline constexpr std::size_t kPiggybackBytes = std::size_t{64} << 10;

/// Whether contributions of `bytes` per member piggyback. Gathering all of them moves more bytes than
/// reducing them does; the extra bytes must cost less than the rounds that are saved.
[[nodiscard]] bool fits_roll_call(std::size_t bytes, int members, int nodes, const CostConstants& constants);

/// The longest message of a long collective, as the cost formulas assume it; the transport has the actual
/// limit.
inline constexpr std::size_t kMessageBytes = std::size_t{56} << 10;

/// Parts of a long collective that are in flight together, so that both directions of
/// the network stay busy while others are reduced.
inline constexpr std::size_t kPartsInFlight = 8;

/// Parts per share of a segment. The members of a node meet twice per segment, so more parts mean fewer
/// meetings.
inline constexpr std::size_t kPartsPerMeeting = 4;

/// The order in which members are combined: any, or that of their ranks.
enum class Order { kAny, kRanks };

/// The fastest for that many bytes of a lane, which the constants belong to; of equal ones the first.
[[nodiscard]] const LaneAlgorithm& choose_algorithm(CollectiveKind kind, std::size_t bytes,
                                                    const LaneShape& lane, const CostConstants& constants,
                                                    Order order = Order::kAny);

/// The bytes of a lane from which on each algorithm of an all-reduce is chosen, in powers of two. The
/// constants are the lane's.
[[nodiscard]] std::vector<TuningFigure> all_reduce_crossovers(int nodes, const CostConstants& constants,
                                                              TuningSource source);

/// Whether a call of a kind that moves a block of `block_bytes` of each member is short: faster in log2 of
/// the nodes' number of rounds, by way of one member of each node, than pairwise. False for other kinds.
[[nodiscard]] bool prefers_few_rounds(CollectiveKind kind, std::size_t block_bytes, int members, int nodes,
                                      const CostConstants& constants);

/// How long Cohort's own algorithm takes for a call among members of several nodes: the roll call alone where
/// the contributions piggyback on it, and otherwise what comes after it, as it does with any algorithm.
[[nodiscard]] double built_in_seconds(const CallShape& call, const CostConstants& constants);

/// The whole call, with its roll call. Messages of more than `eager_bytes` wait until both sides know of each
/// other, for a round trip.
[[nodiscard]] double whole_call_seconds(const CallShape& call, const CostConstants& constants,
                                        std::size_t eager_bytes = SIZE_MAX);

// ---- the probe (probe.cpp) ----
//
// It measures the network and the processor, within the first collective between nodes that needs the
// figures: the members of neighbouring nodes exchange messages in pairs, all at the same time, as collectives
// do. The slowest member counts. First the leaders alone, then members of more and more lanes together, which
// shows how many of them it takes to fill a node's link. With more lanes more members send and reduce at
// once, until they fill the link; with still more, messages get shorter, and more flows share the link, for
// nothing. The number is the one for which [Bayatpour et al., SC'17, DPML] choose their leaders.

/// How long a probe may take; what is not found out by then keeps its built-in value.
inline constexpr std::chrono::milliseconds kProbeBudget{20};

/// Replaces each value by the largest of all members; executed by all of them.
using TakeMaximum = std::function<Task<>(std::span<double> values)>;

/// Executed by all members; those with a lane measure, and all get the same table. A figure keeps its
/// built-in value if it differs little from it, or a lot from one measurement to the next.
[[nodiscard]] Task<TuningTable> probe(Wire& wire, const Topology& topology, TakeMaximum take_maximum);

// ---- how many lanes carry a long call ----

/// What was measured with so many members of each node sending and receiving at once.
struct LaneRate {
  int lanes = 1;
  double seconds_per_byte = 0;  ///< of all that one node sends; it receives as much meanwhile
};

/// The fewest lanes with which an all-reduce is expected to be nearly as fast as with the best number. A byte
/// crosses the link twice, and each lane's member reduces its part. There is at least one rate.
[[nodiscard]] const LaneRate& choose_lanes(std::span<const LaneRate> rates, double reduce_seconds_per_byte);

/// Whether still more lanes are worth a measurement: the last ones gained something over those before. The
/// rates are of growing numbers.
[[nodiscard]] bool may_gain_from_more_lanes(std::span<const LaneRate> rates, double reduce_seconds_per_byte);

}  // namespace cohort::network
