#include "two_level_reduce.h"

#include <cohort/collective/crew.h>
#include <cohort/collective/reduction.h>

#include "rank_order.h"
#include "ring.h"
#include "segments.h"

namespace cohort::network {
namespace {

/// The lane sums; who knows how many members there are divides.
Arithmetic lane_arithmetic(const CollectiveCall& call) {
  return {call.dtype, call.op == ReduceOp::kMean ? ReduceOp::kSum : call.op};
}

/// The most that a member gets of a segment: the first one is the longest.
std::size_t largest_share(const HierarchyContext& context, const Segments& segments) {
  return Blocks(segments.elements(0), context.topology.lanes()).largest();
}

/// Each of the node's members gets its lane's share of the segment, at `output`: the sum of all, or, where
/// only whoever has the contributions of all nodes may sum, those of this node one after the other.
Steps bring_to_lanes(HierarchyContext& context, const CollectiveCall& call, std::size_t begin,
                     std::vector<std::size_t> counts, std::byte* output) {
  CollectiveCall part = call;
  part.kind = context.keeps_rank_order(call) ? CollectiveKind::kAllToAll : CollectiveKind::kReduceScatter;
  part.op = lane_arithmetic(call).op;
  part.input = call.input + begin * size_of(call.dtype);
  part.output = output;
  part.elements = counts[static_cast<std::size_t>(context.endpoint.position().rank)];
  return on_node(context, part, std::move(counts));
}

/// What algorithm the members of a lane use: all of them the same, by what all know alike.
const LaneAlgorithm& algorithm_for(const HierarchyContext& context, const CollectiveCall& call) {
  const Topology& topology = context.topology;
  const std::size_t lane_bytes =
      call.elements * size_of(call.dtype) / static_cast<std::size_t>(topology.lanes());
  if (!context.keeps_rank_order(call)) {
    return call.implementation == CommunicationImplementation::kAuto
               ? context.algorithm(call.kind, lane_bytes)
               : kRing;
  }
  // 16-bit sums are rounded once, by the member that has all contributions.
  if (!topology.ranks_follow_nodes() || is_half(call.dtype)) return kRankOrder;
  return choose_algorithm(call.kind, lane_bytes,
                          LaneShape(topology.nodes(), topology.most_members_on_a_node()), context.constants,
                          Order::kRanks);
}

/// A share of a segment, in parts.
Steps all_reduce_share(HierarchyContext& context, const CollectiveCall& call, const LaneAlgorithm& algorithm,
                       Part share) {
  const std::size_t size = size_of(call.dtype);
  const Segments parts(share.elements,
                       algorithm.part_bytes(context.topology.nodes(), context.wire.message_bytes()) / size);
  const Arithmetic arithmetic =
      algorithm.divides_mean ? Arithmetic{call.dtype, call.op} : lane_arithmetic(call);
  Crew crew;
  for (std::size_t index = 0; index < parts.count(); ++index) {
    const std::size_t offset = parts.begin(index) * size;
    static_cast<void>(
        crew.add(algorithm.run({.lane = context.lane(),
                                .part = {share.input + offset, share.output + offset, parts.elements(index),
                                         share.tag + static_cast<int>(index)},
                                .arithmetic = arithmetic,
                                .topology = &context.topology,
                                .stride = share.elements * size})));
  }
  Steps all = all_done(crew);
  co_await finished(all);
  if (call.op == ReduceOp::kMean && !algorithm.divides_mean) {
    divide_elements(call.dtype, share.output, share.elements,
                    static_cast<std::size_t>(context.topology.members()));
  }
}

/// The result of a part gets to the lane's member on the root's node.
Steps reduce_share(HierarchyContext& context, const CollectiveCall& call, int root_node, Part part) {
  const Lane lane = context.lane();
  const std::size_t size = size_of(call.dtype);
  if (context.keeps_rank_order(call)) {
    Steps reduction =
        rank_order_reduce_scatter(lane, context.topology, part, part.elements * size, {call.dtype, call.op});
    co_await finished(reduction);
    Steps gather = gather_blocks(lane, part, root_node, size);
    co_await finished(gather);
    co_return;
  }
  Steps reduction = ring_reduce(lane, part, root_node, lane_arithmetic(call));
  co_await finished(reduction);
  if (call.op == ReduceOp::kMean && lane.index() == root_node)
    divide_elements(call.dtype, part.output, part.elements,
                    static_cast<std::size_t>(context.topology.members()));
}

}  // namespace

Steps two_level_all_reduce(HierarchyContext& context, const CollectiveCall& call) {
  const std::size_t size = size_of(call.dtype);
  const bool in_rank_order = context.keeps_rank_order(call);
  const LaneAlgorithm& algorithm = algorithm_for(context, call);
  const std::size_t parts = context.parts_per_segment();
  const Segments segments = segments_of(
      context, call, parts * algorithm.part_bytes(context.topology.nodes(), context.wire.message_bytes()));
  const std::size_t in_flight = kPartsInFlight / parts;
  Crew crew;
  const std::size_t contributed_bytes =
      static_cast<std::size_t>(context.local_size()) * largest_share(context, segments) * size;
  std::vector<Wire::Scratch> scratches(in_flight);  // for the contributions of the node
  std::size_t opened = 0;
  for (std::size_t closed = 0; closed < segments.count();) {
    const bool opens = opened < segments.count() && opened - closed < in_flight;
    const std::size_t segment = opens ? opened : closed;
    const std::vector<std::size_t> counts = lane_counts(context, segments.elements(segment));
    const std::size_t begin = segments.begin(segment);
    const std::size_t share = begin + own_share(context, counts);
    const std::size_t elements = counts[static_cast<std::size_t>(context.endpoint.position().rank)];
    std::byte* const output = call.output + share * size;
    if (opens) {
      const std::byte* input = call.input + share * size;
      if (!context.alone_on_node()) {
        Wire::Scratch& scratch = scratches[segment % in_flight];
        if (in_rank_order && scratch.data() == nullptr) scratch = context.wire.scratch(contributed_bytes);
        std::byte* const brought = in_rank_order ? scratch.data() : output;
        Steps meeting = beside(crew, bring_to_lanes(context, call, begin, counts, brought));
        co_await finished(meeting);
        input = brought;
      }
      if (context.has_lane()) {
        static_cast<void>(crew.add(all_reduce_share(
            context, call, algorithm, {input, output, elements, tag_of_part(segment * parts)})));
      }
      ++opened;
    } else {
      if (context.has_lane()) {
        Steps arrival = one_done(crew, closed);
        co_await finished(arrival);
      }
      CollectiveCall gathering = call;
      gathering.kind = CollectiveKind::kAllGather;
      gathering.elements = elements;
      gathering.input = output;
      gathering.output = call.output + begin * size;
      if (!context.alone_on_node()) {
        Steps gather = beside(crew, on_node(context, gathering, counts));
        co_await finished(gather);
      }
      ++closed;
    }
  }
  context.endpoint.set_algorithm(algorithm.name);
}

Steps two_level_reduce(HierarchyContext& context, const CollectiveCall& call) {
  const std::size_t size = size_of(call.dtype);
  const int root_node = context.topology.node_of(call.root);
  const bool at_root = context.topology.own_node() == root_node;
  const bool in_rank_order = context.keeps_rank_order(call);
  const LaneAlgorithm& algorithm = in_rank_order ? kRankOrder : kRing;
  const Segments segments = segments_of(
      context, call, algorithm.part_bytes(context.topology.nodes(), context.wire.message_bytes()));
  const std::size_t share_bytes = largest_share(context, segments) * size;
  // Contributions of the node lie behind the place of the result.
  const std::size_t scratch_bytes =
      share_bytes * static_cast<std::size_t>(in_rank_order ? 1 + context.local_size() : 1);
  Crew crew;
  std::vector<Wire::Scratch> scratches(kPartsInFlight);
  std::size_t opened = 0;
  for (std::size_t closed = 0; closed < segments.count();) {
    const bool opens = opened < segments.count() && opened - closed < kPartsInFlight;
    const std::size_t segment = opens ? opened : closed;
    const std::vector<std::size_t> counts = lane_counts(context, segments.elements(segment));
    const std::size_t elements = counts[static_cast<std::size_t>(context.endpoint.position().rank)];
    const std::size_t begin = segments.begin(segment);
    Wire::Scratch& scratch = scratches[segment % kPartsInFlight];
    if (opens) {
      // Only the root has a place for the result, and the partial sums need one everywhere.
      if (scratch.data() == nullptr) scratch = context.wire.scratch(scratch_bytes);
      const std::byte* input = call.input + begin * size;
      if (!context.alone_on_node()) {
        std::byte* const brought = scratch.data() + (in_rank_order ? share_bytes : 0);
        Steps meeting = beside(crew, bring_to_lanes(context, call, begin, counts, brought));
        co_await finished(meeting);
        input = brought;
      }
      if (context.has_lane()) {
        static_cast<void>(crew.add(
            reduce_share(context, call, root_node, {input, scratch.data(), elements, tag_of_part(segment)})));
      }
      ++opened;
    } else {
      if (context.has_lane()) {
        Steps arrival = one_done(crew, closed);
        co_await finished(arrival);
      }
      if (at_root) {
        CollectiveCall gathering = call;
        gathering.kind = CollectiveKind::kGather;
        gathering.elements = elements;
        gathering.input = scratch.data();
        gathering.output = call.output == nullptr ? nullptr : call.output + begin * size;
        gathering.root = context.local_rank_of(call.root);
        Steps gather = beside(crew, on_node(context, gathering, counts));
        co_await finished(gather);
      }
      ++closed;
    }
  }
  context.endpoint.set_algorithm(algorithm.name);
}

}  // namespace cohort::network
