// The collectives of long data that reduce.
#include <cohort/collective/reduction.h>

#include "collective/task/task_group.h"
#include "lane_algorithms.h"
#include "two_level.h"

namespace cohort::network {
namespace {

/// For a mean the lane only sums; its caller divides by the number of members.
Arithmetic lane_arithmetic(const CollectiveCall& call) {
  return {call.dtype, call.op == ReduceOp::kMean ? ReduceOp::kSum : call.op};
}

/// The most that a member gets of a segment: the first one is the longest.
std::size_t largest_share_bytes(const HierarchyContext& context, const CollectiveCall& call,
                                const Segments& segments) {
  return EvenBlocks(segments.elements(0), context.lanes).largest() * size_of(call.dtype);
}

/// All members reduce the shares together, one after the other; the lane's member gets the sum, at `output`.
Task<> reduce_to_few_lanes(HierarchyContext& context, const CollectiveCall& call, const SegmentShares& shares,
                           std::byte* output) {
  const std::byte* input = call.input + shares.begin * size_of(call.dtype);
  for (int lane = 0; lane < context.lanes; ++lane) {
    CollectiveCall part = call;
    part.kind = CollectiveKind::kReduce;
    part.op = lane_arithmetic(call).op;
    part.root = lane;
    part.elements = shares.counts[static_cast<std::size_t>(lane)];
    part.input = input;
    part.output = lane == context.endpoint.position().rank ? output : nullptr;
    if (part.elements > 0) co_await on_node(context, part);
    input += part.elements * size_of(call.dtype);
  }
}

/// Each of the node's members gets its lane's share of the segment, at `output`: the sum of all, or, where
/// only a member that has the contributions of all nodes may sum, those of this node one after the other.
Task<> bring_to_lanes(HierarchyContext& context, const CollectiveCall& call, const SegmentShares& shares,
                      std::byte* output) {
  if (helps_few_lanes(context) && !context.keeps_rank_order(call))
    return reduce_to_few_lanes(context, call, shares, output);
  CollectiveCall part = call;
  part.kind = context.keeps_rank_order(call) ? CollectiveKind::kAllToAll : CollectiveKind::kReduceScatter;
  part.op = lane_arithmetic(call).op;
  part.input = call.input + shares.begin * size_of(call.dtype);
  part.output = output;
  part.elements = shares.own_elements;
  return on_node(context, part, shares.counts);
}

/// The root, on this node, gets the whole segment; each member has its share of it at `share`.
Task<> gather_at_root(HierarchyContext& context, const CollectiveCall& call, const SegmentShares& shares,
                      const std::byte* share) {
  CollectiveCall part = call;
  part.kind = CollectiveKind::kGather;
  part.root = context.local_rank_of(call.root);
  part.input = share;
  part.output = call.output == nullptr ? nullptr : call.output + shares.begin * size_of(call.dtype);
  part.elements = shares.own_elements;
  return on_node(context, part, shares.counts);
}

/// The algorithm of a lane; the same on all members, since it follows from what all know.
const LaneAlgorithm& algorithm_for(const HierarchyContext& context, const CollectiveCall& call) {
  const Topology& topology = context.topology;
  const std::size_t lane_bytes =
      call.elements * size_of(call.dtype) / static_cast<std::size_t>(context.lanes);
  if (!context.keeps_rank_order(call)) {
    return call.implementation == CommunicationImplementation::kAuto
               ? context.algorithm(call.kind, lane_bytes)
               : kRing;
  }
  // 16-bit sums are rounded once, by the member that has all contributions.
  if (!topology.ranks_follow_nodes() || is_half(call.dtype)) return kRankOrder;
  return choose_algorithm(call.kind, lane_bytes,
                          LaneShape(topology.nodes(), topology.most_members_on_a_node()),
                          shared_by_lanes(context.constants, context.lanes), Order::kRanks);
}

const LaneAlgorithm& reduce_algorithm(const HierarchyContext& context, const CollectiveCall& call,
                                      std::size_t lane_bytes) {
  return call.implementation == CommunicationImplementation::kAuto ? context.algorithm(call.kind, lane_bytes)
                                                                   : kRingReduce;
}

/// A share of a segment, in parts.
Task<> all_reduce_share(HierarchyContext& context, const CollectiveCall& call, const LaneAlgorithm& algorithm,
                        Part share) {
  const std::size_t size = size_of(call.dtype);
  const Segments parts(share.elements,
                       algorithm.part_bytes(context.topology.nodes(), context.wire.message_bytes()) / size);
  const Arithmetic arithmetic =
      algorithm.divides_mean ? Arithmetic{call.dtype, call.op} : lane_arithmetic(call);
  TaskGroup tasks;
  for (std::size_t index = 0; index < parts.count(); ++index) {
    const std::size_t offset = parts.begin(index) * size;
    tasks.add(algorithm.run({.lane = context.lane(),
                             .part = {share.input + offset, share.output + offset, parts.elements(index),
                                      share.tag + static_cast<int>(index)},
                             .arithmetic = arithmetic,
                             .topology = &context.topology,
                             .stride = share.elements * size}));
  }
  co_await tasks.wait_for_all();
  if (call.op == ReduceOp::kMean && !algorithm.divides_mean) {
    divide_elements(call.dtype, share.output, share.elements,
                    static_cast<std::size_t>(context.topology.members()));
  }
}

/// Brings the result of a part to the lane's member on the root's node.
Task<> reduce_share(HierarchyContext& context, const CollectiveCall& call, const LaneAlgorithm& algorithm,
                    int root_node, Part part) {
  const Lane lane = context.lane();
  const std::size_t size = size_of(call.dtype);
  if (context.keeps_rank_order(call)) {
    co_await rank_order_reduce_scatter(lane, context.topology, part, part.elements * size,
                                       {call.dtype, call.op});
    co_await gather_blocks(lane, part, root_node, size);
    co_return;
  }
  co_await algorithm.run(
      {.lane = lane, .part = part, .arithmetic = lane_arithmetic(call), .root = root_node});
  if (call.op == ReduceOp::kMean && lane.index() == root_node)
    divide_elements(call.dtype, part.output, part.elements,
                    static_cast<std::size_t>(context.topology.members()));
}

}  // namespace

Task<> two_level_all_reduce(HierarchyContext& context, const CollectiveCall& call) {
  const std::size_t size = size_of(call.dtype);
  const LaneAlgorithm& algorithm = algorithm_for(context, call);
  const std::size_t parts = context.parts_per_segment();
  const Segments segments = segments_of(
      context, call, parts * algorithm.part_bytes(context.topology.nodes(), context.wire.message_bytes()));
  const std::size_t in_flight = kPartsInFlight / parts;
  TaskGroup tasks;
  SegmentScratch contributions(
      context.wire, in_flight,
      largest_share_bytes(context, call, segments) * static_cast<std::size_t>(context.local_size()));

  const auto open = [&](std::size_t segment) -> Task<> {
    const SegmentShares shares = shares_of(context, segments, segment);
    const std::byte* input = call.input + shares.own_begin * size;
    std::byte* const output = call.output + shares.own_begin * size;
    if (!context.alone_on_node()) {
      std::byte* const brought = context.keeps_rank_order(call) ? contributions.of(segment) : output;
      co_await tasks.run_alongside(bring_to_lanes(context, call, shares, brought));
      input = brought;
    }
    if (context.has_lane()) {
      tasks.add(all_reduce_share(context, call, algorithm,
                                 {input, output, shares.own_elements, tag_of_part(segment * parts)}));
    }
  };
  const auto close = [&](std::size_t segment) -> Task<> {
    if (context.has_lane()) co_await tasks.wait_for(segment);
    if (context.alone_on_node()) co_return;
    const SegmentShares shares = shares_of(context, segments, segment);
    co_await tasks.run_alongside(all_gather_on_node(context, call, shares));
  };
  co_await pipeline(segments.count(), in_flight, open, close);
  context.endpoint.set_algorithm(algorithm.name);
}

Task<> two_level_reduce(HierarchyContext& context, const CollectiveCall& call) {
  const int root_node = context.topology.node_of(call.root);
  const bool in_rank_order = context.keeps_rank_order(call);
  const std::size_t lane_bytes =
      call.elements * size_of(call.dtype) / static_cast<std::size_t>(context.lanes);
  const LaneAlgorithm& algorithm = in_rank_order ? kRankOrder : reduce_algorithm(context, call, lane_bytes);
  const Segments segments = segments_of(
      context, call, algorithm.part_bytes(context.topology.nodes(), context.wire.message_bytes()));
  const std::size_t share_bytes = largest_share_bytes(context, call, segments);
  TaskGroup tasks;
  // Only the root has a place for the result, and the partial sums need one everywhere. Contributions of the
  // node lie after it.
  SegmentScratch results(
      context.wire, kPartsInFlight,
      share_bytes * static_cast<std::size_t>(in_rank_order ? 1 + context.local_size() : 1));

  const auto open = [&](std::size_t segment) -> Task<> {
    const SegmentShares shares = shares_of(context, segments, segment);
    const std::byte* input = call.input + shares.begin * size_of(call.dtype);
    std::byte* const result = results.of(segment);
    if (!context.alone_on_node()) {
      std::byte* const brought = result + (in_rank_order ? share_bytes : 0);
      co_await tasks.run_alongside(bring_to_lanes(context, call, shares, brought));
      input = brought;
    }
    if (context.has_lane()) {
      tasks.add(reduce_share(context, call, algorithm, root_node,
                             {input, result, shares.own_elements, tag_of_part(segment)}));
    }
  };
  const auto close = [&](std::size_t segment) -> Task<> {
    if (context.has_lane()) co_await tasks.wait_for(segment);
    if (context.topology.own_node() != root_node) co_return;
    const SegmentShares shares = shares_of(context, segments, segment);
    co_await tasks.run_alongside(gather_at_root(context, call, shares, results.of(segment)));
  };
  co_await pipeline(segments.count(), kPartsInFlight, open, close);
  context.endpoint.set_algorithm(algorithm.name);
}

namespace {

Task<> sent(Transfer transfer) {
  co_await until([&] { return transfer.done(); });
}

/// One segment of every member's block, as one member takes part in it. A node brings the sum of its
/// members, or, where the order of all ranks must be kept, the contribution of each, one after the other.
class Segment {
 public:
  Segment(HierarchyContext& context, const CollectiveCall& call, std::size_t begin, std::size_t elements,
          int tag)
      : context_(context),
        call_(call),
        begin_(begin),
        elements_(elements),
        bytes_(elements * size_of(call.dtype)),
        tag_(tag),
        in_rank_order_(context.keeps_rank_order(call)),
        op_(call.op == ReduceOp::kMean ? ReduceOp::kSum : call.op),
        brought_(static_cast<std::size_t>(context.topology.nodes())) {}

  /// Begins to receive what other nodes contribute to this member's block.
  void expect_others() {
    for (int node = 0; node < context_.topology.nodes(); ++node) {
      Wire::Scratch& scratch = brought_[static_cast<std::size_t>(node)];
      scratch = context_.wire.scratch(bytes_of(node));
      if (node == context_.topology.own_node()) continue;
      const int agent = context_.topology.agent_of(context_.topology.rank(), node);
      receiving_.push_back(context_.wire.receive(agent, tag_, scratch.data(), bytes_of(node)));
    }
  }

  /// This node's contribution to the block of `member` goes to the member that acts for it here.
  Task<> bring_block(int member, TaskGroup& tasks) {
    const Topology& topology = context_.topology;
    const int agent = topology.agent_of(member, topology.own_node());
    const bool acts = agent == topology.rank();
    CollectiveCall part = call_;
    part.kind = in_rank_order_ ? CollectiveKind::kGather : CollectiveKind::kReduce;
    part.op = op_;
    part.elements = elements_;
    part.root = context_.local_rank_of(agent);
    part.input =
        call_.input + (static_cast<std::size_t>(member) * call_.elements + begin_) * size_of(call_.dtype);
    part.output = nullptr;
    const std::size_t bytes = bytes_of(topology.own_node());
    if (acts) {
      if (member != topology.rank()) leaving_.push_back(context_.wire.scratch(bytes));
      part.output = member == topology.rank() ? brought_[static_cast<std::size_t>(topology.own_node())].data()
                                              : leaving_.back().data();
    }
    co_await tasks.run_alongside(on_node(context_, part));
    if (acts && member != topology.rank())
      tasks.add(sent(context_.wire.send(member, tag_, part.output, bytes)));
  }

  Task<> arrival_of_others() {
    for (Transfer& transfer : receiving_) co_await until([&] { return transfer.done(); });
  }

  void combine() const {
    std::byte* const output = call_.output + begin_ * size_of(call_.dtype);
    if (in_rank_order_) return reduce_elements(call_.dtype, call_.op, by_rank(), output, elements_);
    reduce_elements(call_.dtype, op_, by_node(), output, elements_);
    if (call_.op == ReduceOp::kMean)
      divide_elements(call_.dtype, output, elements_, static_cast<std::size_t>(context_.topology.members()));
  }

 private:
  [[nodiscard]] std::size_t bytes_of(int node) const noexcept {
    return in_rank_order_ ? static_cast<std::size_t>(context_.topology.members_on(node)) * bytes_ : bytes_;
  }

  [[nodiscard]] std::vector<const std::byte*> by_node() const {
    std::vector<const std::byte*> sums;
    for (const Wire::Scratch& scratch : brought_) sums.push_back(scratch.data());
    return sums;
  }

  [[nodiscard]] std::vector<const std::byte*> by_rank() const {
    std::vector<const std::byte*> contributions;
    for (int rank = 0; rank < context_.topology.members(); ++rank) {
      const Wire::Scratch& scratch = brought_[static_cast<std::size_t>(context_.topology.node_of(rank))];
      contributions.push_back(scratch.data() +
                              static_cast<std::size_t>(context_.topology.local_rank_of(rank)) * bytes_);
    }
    return contributions;
  }

  HierarchyContext& context_;
  const CollectiveCall& call_;
  std::size_t begin_;
  std::size_t elements_;
  std::size_t bytes_;
  int tag_;
  bool in_rank_order_;
  ReduceOp op_;                         ///< of a node's members, and of nodes
  std::vector<Wire::Scratch> brought_;  ///< to this member's block, by node
  std::vector<Wire::Scratch> leaving_;  ///< to other members' blocks
  std::vector<Transfer> receiving_;
};

/// Members of the other nodes first, since their blocks take longest; then those of this one.
std::vector<int> in_order_of_sending(const Topology& topology) {
  std::vector<int> members;
  for (int step = 1; step <= topology.nodes(); ++step) {
    const std::vector<int>& next = topology.members_of((topology.own_node() + step) % topology.nodes());
    members.insert(members.end(), next.begin(), next.end());
  }
  return members;
}

}  // namespace

// A segment's sum is written to the output, which may be this member's block of the input, once the whole
// node has read that part of it.

Task<> two_level_reduce_scatter(HierarchyContext& context, const CollectiveCall& call) {
  const std::size_t blocks_per_message =
      context.keeps_rank_order(call) ? static_cast<std::size_t>(context.topology.most_members_on_a_node())
                                     : 1;
  const Segments segments(call.elements,
                          context.wire.message_bytes() / (blocks_per_message * size_of(call.dtype)));
  const std::vector<int> members = in_order_of_sending(context.topology);
  for (std::size_t index = 0; index < segments.count(); ++index) {
    Segment segment(context, call, segments.begin(index), segments.elements(index), tag_of_part(index));
    TaskGroup tasks;
    segment.expect_others();
    for (const int member : members) {
      co_await segment.bring_block(member, tasks);
    }
    tasks.add(segment.arrival_of_others());
    co_await tasks.wait_for_all();
    segment.combine();
  }
  context.endpoint.set_algorithm("two_level_pairwise");
}

}  // namespace cohort::network
