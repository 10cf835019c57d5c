// Collectives over several nodes whose data is long. All members have called them alike, and `call` must
// outlive them. Within a node they go through shared memory, and between nodes along lanes
// (lane_algorithms.h) or pairwise, in p-1 rounds for p nodes. Data that is short takes few_rounds.h.
//
// First what they work with: this member's endpoint on its node, its wire to other nodes, and the topology;
// and how long calls are cut into segments, which are on the node and on the network in turn. The parts of a
// collective that take place on one node are collectives of the node's engine, and count local ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/task.h>

#include "collective/node/endpoint.h"
#include "cost_model.h"
#include "lane.h"
#include "topology.h"

namespace cohort::network {

struct HierarchyContext {
  node::Endpoint& endpoint;
  Wire& wire;
  const Topology& topology;
  const CostConstants& constants;

  /// Of the topology's lanes, the first so many carry long calls; the same on all members. The other members
  /// do their part on the node.
  int lanes;
  [[nodiscard]] bool has_lane() const noexcept { return topology.own_local_rank() < lanes; }
  [[nodiscard]] Lane lane() const { return {wire, topology.own_lane(), topology.own_node(), &agreed}; }

  /// Whether all members are known to have made the same call: after the roll call. Until then received data
  /// is not used, so that no output changes.
  bool agreed = true;

  [[nodiscard]] int local_size() const noexcept { return endpoint.position().size; }
  [[nodiscard]] bool alone_on_node() const noexcept { return local_size() == 1; }
  /// Where no node has several members, segments need no meeting on the node, and are one part each.
  [[nodiscard]] std::size_t parts_per_segment() const noexcept {
    return topology.all_alone() ? 1 : kPartsPerMeeting;
  }
  [[nodiscard]] int local_rank_of(int rank) const noexcept { return topology.local_rank_of(rank); }

  /// Whether the members must be combined from the first rank to the last, and not node by node. The sum
  /// of two is the same either way, unless a mean of it is rounded twice.
  [[nodiscard]] bool keeps_rank_order(const CollectiveCall& call) const noexcept {
    return endpoint.group().fixes_order_of(call) && (topology.members() > 2 || is_half(call.dtype));
  }

  /// The algorithm for a lane's share of that many bytes: what COHORT_ALGORITHM names, or the cost model's
  /// choice.
  [[nodiscard]] const LaneAlgorithm& algorithm(CollectiveKind kind, std::size_t lane_bytes) const;
};

/// Where the tags of urgent calls begin: beyond those of normal ones, registered algorithms among them.
inline constexpr int kFirstUrgentTag = 28'000;

/// Tags: the roll call has 0, so parts begin at 1; those in flight together differ.
[[nodiscard]] inline int tag_of_part(std::size_t part) noexcept { return 1 + static_cast<int>(part % 4096); }

/// A collective among the members of this node, as part of a larger one; `counts` is empty or has the
/// elements of each member's block, by local rank.
[[nodiscard]] Task<> on_node(HierarchyContext& context, CollectiveCall part,
                             std::vector<std::size_t> counts = {});

/// A broadcast on the node: copies `data` of the member with `local_rank` to `data` on each of the others.
[[nodiscard]] Task<> spread_on_node(HierarchyContext& context, DType dtype, std::byte* data,
                                    std::size_t elements, int local_rank);

// ---- segments ----

/// A long call cut into segments, each of which has a share per lane.
class Segments {
 public:
  /// Nearly equal segments of at most `most` elements.
  Segments(std::size_t elements, std::size_t most) : elements_(elements) {
    const std::size_t limit = std::max<std::size_t>(most, 1);
    const std::size_t count = std::max<std::size_t>((elements + limit - 1) / limit, 1);
    step_ = std::max<std::size_t>((elements + count - 1) / count, 1);
  }

  [[nodiscard]] std::size_t count() const noexcept { return (elements_ + step_ - 1) / step_; }
  [[nodiscard]] std::size_t begin(std::size_t segment) const noexcept { return segment * step_; }
  [[nodiscard]] std::size_t elements(std::size_t segment) const noexcept {
    return std::min(step_, elements_ - begin(segment));
  }

 private:
  std::size_t elements_;
  std::size_t step_ = 1;
};

/// Segments whose shares have about `share_bytes`.
[[nodiscard]] Segments segments_of(const HierarchyContext& context, const CollectiveCall& call,
                                   std::size_t share_bytes);

/// A segment of a call, cut into the lanes' shares, in elements.
struct SegmentShares {
  std::size_t begin;                ///< where the segment begins
  std::size_t own_begin;            ///< where this member's share of it begins
  std::size_t own_elements;         ///< of that share; none without a lane
  std::vector<std::size_t> counts;  ///< of all shares, by local rank; none of members without a lane
};
[[nodiscard]] SegmentShares shares_of(const HierarchyContext& context, const Segments& segments,
                                      std::size_t segment);

/// Whether a node's members do the work of its lanes together, one lane after the other: few lanes alone
/// would take longer. The same on all members of a node.
[[nodiscard]] bool helps_few_lanes(const HierarchyContext& context);

/// On the node: each member with a lane has its share of the segment in the output, and all get all of it.
/// `shares` must outlive it.
[[nodiscard]] Task<> all_gather_on_node(HierarchyContext& context, const CollectiveCall& call,
                                        const SegmentShares& shares);

/// The segments of a collective follow each other: each is opened on the node; its share then travels along
/// the lane, as a task of a group; when that task is done, the segment is closed on the node. Segments are
/// opened before others are closed, so that the network has something to do meanwhile.
///
/// `open(segment)` and `close(segment)` give tasks, each of which is awaited before the next one is made; at
/// most `in_flight` segments are open at a time. Both go from the first segment to the last, so task numbers
/// equal segment numbers if each `open` adds one task to a group.
template <class Open, class Close>
[[nodiscard]] Task<> pipeline(std::size_t segments, std::size_t in_flight, Open open, Close close) {
  std::size_t opened = 0;
  for (std::size_t closed = 0; closed < segments; ++closed) {
    for (; opened < segments && opened - closed < in_flight; ++opened) co_await open(opened);
    co_await close(closed);
  }
}

/// Memory for each segment in flight, from its first use on.
class SegmentScratch {
 public:
  SegmentScratch(Wire& wire, std::size_t in_flight, std::size_t bytes)
      : wire_(wire), bytes_(bytes), scratches_(in_flight) {}

  [[nodiscard]] std::byte* of(std::size_t segment) {
    Wire::Scratch& scratch = scratches_[segment % scratches_.size()];
    if (scratch.data() == nullptr) scratch = wire_.scratch(bytes_);
    return scratch.data();
  }

 private:
  Wire& wire_;
  std::size_t bytes_;
  std::vector<Wire::Scratch> scratches_;
};

// ---- collectives that move data and reduce nothing (two_level_movement.cpp) ----
//
// Data for all members of another node crosses to it once, to one member, which spreads it there; data for
// one member goes to it straight from its owner.

/// In segments: the root's node gets all, each lane carries its share, the other nodes gather. Cost  n beta,
/// and the latency of one segment.
[[nodiscard]] Task<> two_level_broadcast(HierarchyContext& context, const CollectiveCall& call);

/// Each block goes to one member of every other node, in steps if it is long (pairwise_exchange.h). Cost
/// (p-1)/p n beta.
[[nodiscard]] Task<> two_level_all_gather(HierarchyContext& context, const CollectiveCall& call);

/// Pairwise between nodes; a long all-to-all in steps (pairwise_exchange.h).
[[nodiscard]] Task<> two_level_gather_or_scatter(HierarchyContext& context, const CollectiveCall& call);
[[nodiscard]] Task<> two_level_all_to_all(HierarchyContext& context, const CollectiveCall& call);

// ---- collectives that reduce (two_level_reduce.cpp) ----

/// All-reduce and reduce, in segments. Of each segment, the members of a node reduce a share apiece; every
/// share then travels along its own lane; and the node gathers the results. While one segment is on the
/// network, the next is reduced on the node and the one before is gathered.
///
/// Cost of n bytes with l lanes: the lanes share a node's link but reduce side by side, so the algorithm's
/// beta counts for n bytes, its gamma for n/l, and there is the latency of one segment. The work on the node
/// hides behind a slow network. With a fast one it adds up, since one thread of each member does both.
///
/// 16-bit elements are rounded once per level and node on the way: within a node all members are summed in
/// float32, between nodes each pass of the lane's algorithm rounds.
///
/// Where the members must be combined in the order of their ranks, the members of a node exchange
/// contributions instead of reducing them, and the lane combines.
[[nodiscard]] Task<> two_level_all_reduce(HierarchyContext& context, const CollectiveCall& call);
[[nodiscard]] Task<> two_level_reduce(HierarchyContext& context, const CollectiveCall& call);

/// Every node reduces each member's block, and sends it to that member, which sums what the nodes sent.
/// Pairwise, in segments; cost, for p nodes and n bytes of all blocks:  (p-1) alpha + (p-1)/p n beta + n
/// gamma, on each node's link.
///
/// 16-bit elements are rounded once per node, and once more in the sum of the nodes.
[[nodiscard]] Task<> two_level_reduce_scatter(HierarchyContext& context, const CollectiveCall& call);

}  // namespace cohort::network
