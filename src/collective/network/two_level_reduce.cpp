#include "two_level_reduce.h"

#include <cohort/collective/reduction.h>

#include "crew.h"
#include "halving_doubling.h"
#include "recursive_doubling.h"
#include "ring.h"
#include "segments.h"

namespace cohort::network {
namespace {

using node::finished;

/// The lane sums; who knows how many members there are divides.
Arithmetic lane_arithmetic(const CollectiveCall& call) {
  return {call.dtype, call.op == ReduceOp::kMean ? ReduceOp::kSum : call.op};
}

/// The sum of the node's members: each gets its lane's share of the segment, at `output`.
Steps reduce_on_node(Site& site, const CollectiveCall& call, std::size_t begin,
                     std::vector<std::size_t> counts, std::byte* output) {
  CollectiveCall part = call;
  part.kind = CollectiveKind::kReduceScatter;
  part.op = lane_arithmetic(call).op;
  part.input = call.input + begin * size_of(call.dtype);
  part.output = output;
  part.elements = counts[static_cast<std::size_t>(site.seat.place().rank)];
  return on_node(site, part, std::move(counts));
}

Steps all_reduce_along(AllReduceAlgorithm algorithm, const Lane& lane, const Part& part,
                       const Arithmetic& arithmetic) {
  switch (algorithm) {
    case AllReduceAlgorithm::kRing: return ring_all_reduce(lane, part, arithmetic);
    case AllReduceAlgorithm::kHalvingDoubling: return halving_doubling_all_reduce(lane, part, arithmetic);
    case AllReduceAlgorithm::kRecursiveDoubling: break;
  }
  return recursive_doubling_all_reduce(lane, part, arithmetic);
}

/// A share of a segment, in parts.
Steps all_reduce_share(Site& site, const CollectiveCall& call, AllReduceAlgorithm algorithm, Part share) {
  const Lane lane = site.lane();
  const Arithmetic arithmetic = lane_arithmetic(call);
  const Segments parts(share.elements, part_bytes(algorithm, lane.size()) / size_of(call.dtype));
  Crew crew;
  for (std::size_t index = 0; index < parts.count(); ++index) {
    const std::size_t offset = arithmetic.bytes(parts.begin(index));
    static_cast<void>(crew.add(all_reduce_along(algorithm, lane,
                                                {share.input + offset, share.output + offset,
                                                 parts.elements(index), share.tag + static_cast<int>(index)},
                                                arithmetic)));
  }
  Steps all = all_done(crew);
  co_await finished(all);
  if (call.op == ReduceOp::kMean) {
    divide_elements(call.dtype, share.output, share.elements,
                    static_cast<std::size_t>(site.topology.members()));
  }
}

/// The result of a part gets to the lane's member on the root's node.
Steps reduce_share(Site& site, const CollectiveCall& call, int root_node, Part part) {
  const Lane lane = site.lane();
  Steps reduction = ring_reduce(lane, part, root_node, lane_arithmetic(call));
  co_await finished(reduction);
  if (call.op == ReduceOp::kMean && lane.index() == root_node)
    divide_elements(call.dtype, part.output, part.elements,
                    static_cast<std::size_t>(site.topology.members()));
}

}  // namespace

Steps two_level_all_reduce(Site& site, const CollectiveCall& call) {
  const std::size_t size = size_of(call.dtype);
  const std::size_t lane_bytes = call.elements * size / static_cast<std::size_t>(site.topology.lanes());
  const AllReduceAlgorithm algorithm =
      call.implementation == CommunicationImplementation::kAuto
          ? choose_all_reduce(lane_bytes, site.topology.nodes(), site.constants)
          : AllReduceAlgorithm::kRing;
  const std::size_t parts = site.parts_per_segment();
  const Segments segments = segments_of(site, call, parts * part_bytes(algorithm, site.topology.nodes()));
  const std::size_t in_flight = kPartsInFlight / parts;
  Crew crew;
  std::size_t opened = 0;
  for (std::size_t closed = 0; closed < segments.count();) {
    const bool opens = opened < segments.count() && opened - closed < in_flight;
    const std::size_t segment = opens ? opened : closed;
    const std::vector<std::size_t> counts = lane_counts(site, segments.elements(segment));
    const std::size_t begin = segments.begin(segment);
    const std::size_t share = begin + own_share(site, counts);
    std::byte* const output = call.output + share * size;
    if (opens) {
      const std::byte* input = call.input + share * size;
      if (!site.alone_on_node()) {
        Steps reduction = beside(crew, reduce_on_node(site, call, begin, counts, output));
        co_await finished(reduction);
        input = output;
      }
      if (site.has_lane()) {
        const std::size_t elements = counts[static_cast<std::size_t>(site.seat.place().rank)];
        static_cast<void>(crew.add(all_reduce_share(
            site, call, algorithm, {input, output, elements, tag_of_part(segment * parts)})));
      }
      ++opened;
    } else {
      if (site.has_lane()) {
        Steps arrival = one_done(crew, closed);
        co_await finished(arrival);
      }
      CollectiveCall gathering = call;
      gathering.kind = CollectiveKind::kAllGather;
      gathering.elements = counts[static_cast<std::size_t>(site.seat.place().rank)];
      gathering.input = output;
      gathering.output = call.output + begin * size;
      if (!site.alone_on_node()) {
        Steps gather = beside(crew, on_node(site, gathering, counts));
        co_await finished(gather);
      }
      ++closed;
    }
  }
  site.seat.algorithm = to_string(algorithm);
}

Steps two_level_reduce(Site& site, const CollectiveCall& call) {
  const std::size_t size = size_of(call.dtype);
  const int root_node = site.topology.node_of(call.root);
  const bool at_root = site.topology.own_node() == root_node;
  const Segments segments =
      segments_of(site, call, part_bytes(AllReduceAlgorithm::kRing, site.topology.nodes()));
  Crew crew;
  std::vector<Wire::Room> rooms(kPartsInFlight);
  std::size_t opened = 0;
  for (std::size_t closed = 0; closed < segments.count();) {
    const bool opens = opened < segments.count() && opened - closed < kPartsInFlight;
    const std::size_t segment = opens ? opened : closed;
    const std::vector<std::size_t> counts = lane_counts(site, segments.elements(segment));
    const std::size_t elements = counts[static_cast<std::size_t>(site.seat.place().rank)];
    const std::size_t begin = segments.begin(segment);
    Wire::Room& room = rooms[segment % kPartsInFlight];
    if (opens) {
      // Only the root has a place for the result, and the partial sums need one everywhere.
      if (room.data() == nullptr) room = site.wire.room(elements * size);
      const std::byte* input = call.input + begin * size;
      if (!site.alone_on_node()) {
        Steps reduction = beside(crew, reduce_on_node(site, call, begin, counts, room.data()));
        co_await finished(reduction);
        input = room.data();
      }
      if (site.has_lane()) {
        static_cast<void>(crew.add(
            reduce_share(site, call, root_node, {input, room.data(), elements, tag_of_part(segment)})));
      }
      ++opened;
    } else {
      if (site.has_lane()) {
        Steps arrival = one_done(crew, closed);
        co_await finished(arrival);
      }
      if (at_root) {
        CollectiveCall gathering = call;
        gathering.kind = CollectiveKind::kGather;
        gathering.elements = elements;
        gathering.input = room.data();
        gathering.output = call.output == nullptr ? nullptr : call.output + begin * size;
        gathering.root = site.seat_of(call.root);
        Steps gather = beside(crew, on_node(site, gathering, counts));
        co_await finished(gather);
      }
      ++closed;
    }
  }
  site.seat.algorithm = "two_level_ring";
}

}  // namespace cohort::network
