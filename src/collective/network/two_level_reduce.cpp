#include "two_level_reduce.h"

#include <cohort/collective/reduction.h>

#include "chain.h"
#include "collective/task/task_group.h"
#include "halving_doubling.h"
#include "rank_order.h"
#include "recursive_doubling.h"
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
Task<> bring_to_lanes(HierarchyContext& context, const CollectiveCall& call, std::size_t begin,
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
AllReduceAlgorithm algorithm_for(const HierarchyContext& context, const CollectiveCall& call) {
  const Topology& topology = context.topology;
  const std::size_t lane_bytes =
      call.elements * size_of(call.dtype) / static_cast<std::size_t>(topology.lanes());
  if (!context.keeps_rank_order(call)) {
    return call.implementation == CommunicationImplementation::kAuto
               ? context.all_reduce_algorithm(lane_bytes)
               : AllReduceAlgorithm::kRing;
  }
  // 16-bit sums are rounded once, by whom has all contributions.
  if (!topology.ranks_follow_nodes() || is_half(call.dtype)) return AllReduceAlgorithm::kRankOrder;
  return choose_ordered_all_reduce(lane_bytes, topology.nodes(), topology.most_members_on_a_node(),
                                   context.constants);
}

/// A part of the contributions that lie `stride` bytes apart.
Task<> all_reduce_in_rank_order(Lane lane, const Topology& topology, Part part, std::size_t stride,
                                Arithmetic arithmetic) {
  co_await rank_order_reduce_scatter(lane, topology, part, stride, arithmetic);
  co_await ring_all_gather(lane, part, size_of(arithmetic.dtype));
}

/// A part of a share; `stride` tells apart what the node's members bring, where it is not their sum.
Task<> all_reduce_along(AllReduceAlgorithm algorithm, const HierarchyContext& context,
                        const CollectiveCall& call, const Part& part, std::size_t stride) {
  const Lane lane = context.lane();
  switch (algorithm) {
    case AllReduceAlgorithm::kRing: return ring_all_reduce(lane, part, lane_arithmetic(call));
    case AllReduceAlgorithm::kHalvingDoubling:
      return halving_doubling_all_reduce(lane, part, lane_arithmetic(call));
    case AllReduceAlgorithm::kRankOrder:
      return all_reduce_in_rank_order(lane, context.topology, part, stride, {call.dtype, call.op});
    case AllReduceAlgorithm::kChain:
      return chain_all_reduce(lane, context.topology, part, stride, lane_arithmetic(call));
    case AllReduceAlgorithm::kRecursiveDoubling: break;
  }
  return recursive_doubling_all_reduce(lane, part, lane_arithmetic(call));
}

/// A share of a segment, in parts.
Task<> all_reduce_share(HierarchyContext& context, const CollectiveCall& call, AllReduceAlgorithm algorithm,
                        Part share) {
  const std::size_t size = size_of(call.dtype);
  const Segments parts(share.elements,
                       part_bytes(algorithm, context.topology.nodes(), context.wire.message_bytes()) / size);
  TaskGroup tasks;
  for (std::size_t index = 0; index < parts.count(); ++index) {
    const std::size_t offset = parts.begin(index) * size;
    tasks.add(all_reduce_along(algorithm, context, call,
                               {share.input + offset, share.output + offset, parts.elements(index),
                                share.tag + static_cast<int>(index)},
                               share.elements * size));
  }
  co_await tasks.wait_for_all();
  if (call.op == ReduceOp::kMean && algorithm != AllReduceAlgorithm::kRankOrder) {
    divide_elements(call.dtype, share.output, share.elements,
                    static_cast<std::size_t>(context.topology.members()));
  }
}

/// The result of a part gets to the lane's member on the root's node.
Task<> reduce_share(HierarchyContext& context, const CollectiveCall& call, int root_node, Part part) {
  const Lane lane = context.lane();
  const std::size_t size = size_of(call.dtype);
  if (context.keeps_rank_order(call)) {
    co_await rank_order_reduce_scatter(lane, context.topology, part, part.elements * size,
                                       {call.dtype, call.op});
    co_await gather_blocks(lane, part, root_node, size);
    co_return;
  }
  co_await ring_reduce(lane, part, root_node, lane_arithmetic(call));
  if (call.op == ReduceOp::kMean && lane.index() == root_node)
    divide_elements(call.dtype, part.output, part.elements,
                    static_cast<std::size_t>(context.topology.members()));
}

}  // namespace

Task<> two_level_all_reduce(HierarchyContext& context, const CollectiveCall& call) {
  const std::size_t size = size_of(call.dtype);
  const bool in_rank_order = context.keeps_rank_order(call);
  const AllReduceAlgorithm algorithm = algorithm_for(context, call);
  const std::size_t parts = context.parts_per_segment();
  const Segments segments = segments_of(
      context, call, parts * part_bytes(algorithm, context.topology.nodes(), context.wire.message_bytes()));
  const std::size_t in_flight = kPartsInFlight / parts;
  TaskGroup tasks;
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
        co_await tasks.run_alongside(bring_to_lanes(context, call, begin, counts, brought));
        input = brought;
      }
      if (context.has_lane()) {
        tasks.add(all_reduce_share(context, call, algorithm,
                                   {input, output, elements, tag_of_part(segment * parts)}));
      }
      ++opened;
    } else {
      if (context.has_lane()) {
        co_await tasks.wait_for(closed);
      }
      CollectiveCall gathering = call;
      gathering.kind = CollectiveKind::kAllGather;
      gathering.elements = elements;
      gathering.input = output;
      gathering.output = call.output + begin * size;
      if (!context.alone_on_node()) {
        co_await tasks.run_alongside(on_node(context, gathering, counts));
      }
      ++closed;
    }
  }
  context.endpoint.algorithm = to_string(algorithm);
}

Task<> two_level_reduce(HierarchyContext& context, const CollectiveCall& call) {
  const std::size_t size = size_of(call.dtype);
  const int root_node = context.topology.node_of(call.root);
  const bool at_root = context.topology.own_node() == root_node;
  const bool in_rank_order = context.keeps_rank_order(call);
  const Segments segments = segments_of(
      context, call,
      part_bytes(AllReduceAlgorithm::kRing, context.topology.nodes(), context.wire.message_bytes()));
  const std::size_t share_bytes = largest_share(context, segments) * size;
  // Contributions of the node lie behind the place of the result.
  const std::size_t scratch_bytes =
      share_bytes * static_cast<std::size_t>(in_rank_order ? 1 + context.local_size() : 1);
  TaskGroup tasks;
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
        co_await tasks.run_alongside(bring_to_lanes(context, call, begin, counts, brought));
        input = brought;
      }
      if (context.has_lane()) {
        tasks.add(
            reduce_share(context, call, root_node, {input, scratch.data(), elements, tag_of_part(segment)}));
      }
      ++opened;
    } else {
      if (context.has_lane()) {
        co_await tasks.wait_for(closed);
      }
      if (at_root) {
        CollectiveCall gathering = call;
        gathering.kind = CollectiveKind::kGather;
        gathering.elements = elements;
        gathering.input = scratch.data();
        gathering.output = call.output == nullptr ? nullptr : call.output + begin * size;
        gathering.root = context.local_rank_of(call.root);
        co_await tasks.run_alongside(on_node(context, gathering, counts));
      }
      ++closed;
    }
  }
  context.endpoint.algorithm =
      to_string(in_rank_order ? AllReduceAlgorithm::kRankOrder : AllReduceAlgorithm::kRing);
}

}  // namespace cohort::network
