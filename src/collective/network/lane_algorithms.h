// The algorithms that move a part of a lane's data between nodes: all-reduces in any order of the members and
// in that of their ranks, reduces, and broadcasts. Each has a record with everything that is needed to
// choose, name and run it. A new one is such a record, with its source, cost and the reason to choose it
// here, and a row in the table of lane_algorithms.cpp.
//
// A record resembles what `register_algorithm` takes (algorithm.h), but does less: a registered algorithm
// executes a whole call among all members, while these move a part of a lane's data, many at the same time,
// between the meetings of a node's members.
//
// Sources: lane_algorithms.cpp has the table and the all-reduces in any order, lane_rank_order.cpp those in
// the order of the ranks, lane_reduce_broadcast.cpp the others.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <string_view>

#include <cohort/collective/collective_kind.h>
#include <cohort/collective/task.h>

#include "lane.h"
#include "topology.h"

namespace cohort::network {

/// A lane, as cost formulas see it.
struct LaneShape {
  double members;          ///< p: one on each node
  double members_of_node;  ///< members on the largest node, whose contributions one of them may send
  double doublings;        ///< rounds of the largest power of two
  double folds;            ///< 1 if some members sit out
  double ring_fraction;    ///< (p-1)/p

  explicit LaneShape(int nodes, int most_members_of_a_node = 1)
      : members(nodes),
        members_of_node(most_members_of_a_node),
        doublings(std::bit_width(static_cast<unsigned>(nodes)) - 1),
        folds(std::has_single_bit(static_cast<unsigned>(nodes)) ? 0 : 1),
        ring_fraction((members - 1) / members) {}
};

/// What it costs to move n bytes, as multiples of alpha, beta and gamma (lane.h).
struct LaneCost {
  double rounds = 0;         ///< alphas
  double bytes_sent = 0;     ///< betas
  double bytes_reduced = 0;  ///< gammas
  /// Messages of the longest kind are followed by ones of half the length and so on, in so many rounds each;
  /// 0: all messages have one length.
  int rounds_of_each_length = 0;
};

/// A part of a lane's data, for an algorithm of any kind.
struct PartCall {
  Lane lane;
  Part part;
  Arithmetic arithmetic;               ///< the operator of kinds that reduce; all have the dtype
  int root = 0;                        ///< the lane's member that has the data
  const Topology* topology = nullptr;  ///< only for algorithms in the order of the ranks
  std::size_t stride = 0;              ///< likewise: bytes from one contribution of this node to the next
};

struct LaneAlgorithm {
  /// As benchmarks name it, for example `two_level_ring`.
  std::string_view name;
  CollectiveKind kind;

  /// Combines the members in the order of their ranks. Chosen where results must be reproducible, and
  /// nowhere else, so COHORT_ALGORITHM cannot name it.
  bool in_rank_order = false;
  /// Divides the sum itself where a mean is wanted; with other algorithms the caller divides.
  bool divides_mean = false;

  LaneCost (*cost)(const LaneShape& lane, double bytes);
  /// Bytes of a part, such that its messages have at most `message_bytes`.
  std::size_t (*part_bytes)(int members, std::size_t message_bytes);
  Task<> (*run)(const PartCall& call);

  /// As COHORT_ALGORITHM names it, for example `ring`.
  [[nodiscard]] constexpr std::string_view setting() const noexcept {
    return name.substr(std::string_view("two_level_").size());
  }
};

/// For `part_bytes`: messages are whole parts, halves at the most, or one block of a part for each member.
[[nodiscard]] inline std::size_t part_of_one_message(int /*members*/, std::size_t message_bytes) {
  return message_bytes;
}
[[nodiscard]] inline std::size_t part_of_two_messages(int /*members*/, std::size_t message_bytes) {
  return 2 * message_bytes;
}
[[nodiscard]] inline std::size_t part_of_blocks(int members, std::size_t message_bytes) {
  return message_bytes * static_cast<std::size_t>(members);
}

/// Of halving, and as many rounds back: by doubling, or to the root.
[[nodiscard]] inline LaneCost halving_cost(const LaneShape& lane, double bytes) {
  return {2 * (lane.doublings + lane.folds), (2 * lane.ring_fraction + 2 * lane.folds) * bytes,
          (lane.ring_fraction + lane.folds) * bytes, 2};
}

/// All of them. Of equal costs, the first of a kind is chosen.
[[nodiscard]] std::span<const LaneAlgorithm* const> lane_algorithms() noexcept;

// ---- all-reduces in any order of the members ----
//
// Recursive doubling and halving-doubling are for powers of two. Other numbers fold first [Thakur,
// Rabenseifner, Gropp 2005, section 4.4]: of p = 2^k + r members, the even ones of r pairs hand their data to
// the odd ones, sit out, and are handed the result at the end. That costs 2 (alpha + n beta) + n gamma more.

/// Recursive doubling [Thakur, Rabenseifner, Gropp 2005, section 4.1]: in round k members
/// 2^k apart exchange everything that they have. Cost  log2(p) (alpha + n beta + n gamma):
/// the fewest rounds, so the choice for short parts. Between two members no algorithm moves
/// fewer bytes, but the ring reduces half as many, and is chosen for long parts.
extern const LaneAlgorithm kRecursiveDoubling;

[[nodiscard]] Task<> recursive_doubling_all_reduce(Lane lane, Part part, Arithmetic arithmetic);

/// Halving-doubling [Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005, section 4.4]: a
/// reduce-scatter by recursive halving, then an all-gather by recursive doubling. Cost
/// 2 log2(p) alpha + (p-1)/p n (2 beta + gamma): the ring's bytes in fewer rounds, where
/// p is a power of two; others fold, which costs all bytes twice more.
extern const LaneAlgorithm kHalvingDoubling;

[[nodiscard]] Task<> halving_doubling_all_reduce(Lane lane, Part part, Arithmetic arithmetic);

/// The output of the root gets the result, by halving and then along a tree; those of the others are used on
/// the way.
[[nodiscard]] Task<> halving_reduce(Lane lane, Part part, int root, Arithmetic arithmetic);

/// The same backwards: all outputs get that of the root, in blocks along the tree and then by doubling.
[[nodiscard]] Task<> halving_broadcast(Lane lane, Part part, int root, std::size_t element_bytes);

/// The ring [Patarasuk, Yuan 2009]: every member sends to the next and receives from the
/// one before, all at the same time, so both directions of every link are busy and no
/// byte crosses one twice. The fewest bytes that an all-reduce can move, in the most
/// rounds: the choice for long messages.
///
///   reduce-scatter   (p-1) alpha + (p-1)/p n (beta + gamma)
///   all-gather       (p-1) alpha + (p-1)/p n beta
///   all-reduce       both, one after the other
extern const LaneAlgorithm kRing;

[[nodiscard]] Task<> ring_all_reduce(Lane lane, Part part, Arithmetic arithmetic);

/// Block `index` of each member's output goes to its place in the output of `root`.
[[nodiscard]] Task<> gather_blocks(Lane lane, Part part, int root, std::size_t element_bytes);

/// Block `index` of `EvenBlocks(elements, size)` of the output gets that block of the result; the other
/// blocks are used on the way.
[[nodiscard]] Task<> ring_reduce_scatter(Lane lane, Part part, Arithmetic arithmetic);

/// Each member has block `index` of its output, and gets all others.
[[nodiscard]] Task<> ring_all_gather(Lane lane, Part part, std::size_t element_bytes);

// ---- all-reduces in the order of the ranks ----

/// Sums in the order of the ranks, whatever their placement on nodes, by the reduce-scatter below and then
/// the all-gather of a ring: the contributions travel as they are, and the owner of a block combines those of
/// all members in one pass, from the first rank to the last, as the members of one node do. So 16-bit
/// elements are rounded once.
///
/// Cost of n bytes, with m members on each of p nodes:  alpha + (p-1)/p m n beta + m n gamma.
/// With one member on each node, the bytes of a ring's reduce-scatter, in one round.
extern const LaneAlgorithm kRankOrder;

/// Block `index` of `EvenBlocks(elements, size)` of the output gets that block of the result. The input is
/// the contribution of this node's first member; those of the others follow, each `stride` bytes after the
/// one before. MEAN is divided here.
[[nodiscard]] Task<> rank_order_reduce_scatter(Lane lane, const Topology& topology, Part part,
                                               std::size_t stride, Arithmetic arithmetic);

/// A sum in the order of the ranks where those of each node follow the ones of the node before: it goes from
/// the first node to the last, each of which adds what its members contribute, and the result comes back
/// along the same nodes. While one part is on its way back, others are on their way there.
///
/// Cost of n bytes over p nodes, in parts of s bytes:  2 (p-1) (alpha + s beta) for the first part,
/// and 2 n beta for all of them, or n beta for two nodes: each end has but one neighbour.
/// However many members a node has, only sums travel.
extern const LaneAlgorithm kChain;

/// The input is the contribution of this node's first member; those of the others follow, each `stride` bytes
/// after the one before. Not for 16-bit elements: every sum on the way would be rounded.
[[nodiscard]] Task<> chain_all_reduce(Lane lane, const Topology& topology, Part part, std::size_t stride,
                                      Arithmetic arithmetic);

// ---- reduces: the output of the root gets the result; those of the others are used on the way ----

// Binomial tree: in each round half of the members that are left send what they have to the other half. Cost
// log2(p) (alpha + n (beta + gamma)): the choice for short parts.
//
// Halving [Rabenseifner 2004]: the reduce-scatter of halving-doubling, and then the blocks to the root along
// the same tree. Cost  2 log2(p) alpha + (p-1)/p n (2 beta + gamma), where p is a power of two; others fold
// first.
//
// Ring: its reduce-scatter, and then each block to the root at once. Cost  p alpha + (p-1)/p n (2 beta +
// gamma): the choice for long parts of few members, since no member sends a byte twice.

extern const LaneAlgorithm kBinomialReduce;
extern const LaneAlgorithm kHalvingReduce;
extern const LaneAlgorithm kRingReduce;

[[nodiscard]] Task<> binomial_reduce(Lane lane, Part part, int root, Arithmetic arithmetic);
[[nodiscard]] Task<> ring_reduce(Lane lane, Part part, int root, Arithmetic arithmetic);

// ---- broadcasts ----

// Binomial tree [van de Geijn 1991]: each member that has the data sends it to one
// that has not, so the number that have it doubles in each round. Cost  log2(p)
// (alpha + n beta): the choice for short parts.
//
// Halving, doubling: the root's blocks go along a tree, each member has one, and they gather all by doubling.
// Cost  2 log2(p) alpha + 2 (p-1)/p n beta, where p is a power of two; others fold, which costs all bytes
// twice more: the choice in between.
//
// Scatter and all-gather [van de Geijn, Watts 1995]: the root hands each member a block,
// and a ring gathers them. Cost  2 (p-1) alpha + 2 (p-1)/p n beta: the choice for long
// parts and many members.

extern const LaneAlgorithm kBinomial;
extern const LaneAlgorithm kHalvingBroadcast;
extern const LaneAlgorithm kScatterAllGather;

/// The root's output is the data; the input is not used.
[[nodiscard]] Task<> binomial_broadcast(Lane lane, Part part, int root, std::size_t element_bytes);
[[nodiscard]] Task<> scatter_all_gather_broadcast(Lane lane, Part part, int root, std::size_t element_bytes);

}  // namespace cohort::network
