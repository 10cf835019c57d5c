// The record of one algorithm between nodes: everything that is needed to choose, name
// and run it. A new one is a file with such a record, its cost formula beside it, and a
// row in the table of lane_algorithms.cpp.
//
// It resembles what `register_algorithm` takes (algorithm.h), but does less: a registered algorithm executes
// a whole call among all members, while these move a part of a lane's data, many at the same time, between
// the meetings of a node's members.
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

/// For `part_bytes`: messages are whole parts, or one block of a part for each member.
[[nodiscard]] inline std::size_t part_of_one_message(int /*members*/, std::size_t message_bytes) {
  return message_bytes;
}
[[nodiscard]] inline std::size_t part_of_blocks(int members, std::size_t message_bytes) {
  return message_bytes * static_cast<std::size_t>(members);
}

/// All of them. Of equal costs, the first of a kind is chosen.
[[nodiscard]] std::span<const LaneAlgorithm* const> lane_algorithms() noexcept;

}  // namespace cohort::network
