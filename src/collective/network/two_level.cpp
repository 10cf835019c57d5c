#include "two_level.h"

#include <algorithm>
#include <utility>

#include <cohort/collective/copy_bytes.h>
#include <cohort/collective/reduction.h>

#include "collective/node/execute.h"

namespace cohort::network {

const LaneAlgorithm& HierarchyContext::algorithm(CollectiveKind kind, std::size_t lane_bytes) const {
  const BuiltInAlgorithm* const forced = endpoint.group().selection().forced(kind);
  if (forced != nullptr && forced->lane_algorithm != nullptr) return *forced->lane_algorithm;
  return choose_algorithm(kind, lane_bytes, LaneShape(topology.nodes()), shared_by_lanes(constants, lanes));
}

Task<> on_node(HierarchyContext& context, CollectiveCall part, std::vector<std::size_t> counts) {
  part.counts = counts;
  part.layout = 0;
  part.buffers = {};
  if (context.alone_on_node()) {
    if (part.output != nullptr && part.output != part.input)
      copy_bytes(part.output, part.input, part.elements * size_of(part.dtype));
    co_return;
  }
  co_await node::execute(context.endpoint, part);
}

Task<> spread_on_node(HierarchyContext& context, DType dtype, std::byte* data, std::size_t elements,
                      int local_rank) {
  CollectiveCall part;
  part.kind = CollectiveKind::kBroadcast;
  part.dtype = dtype;
  part.elements = elements;
  part.root = local_rank;
  part.input = part.output = data;
  return on_node(context, part);
}

SegmentShares shares_of(const HierarchyContext& context, const Segments& segments, std::size_t segment) {
  const int lanes = context.lanes;
  const int own = context.endpoint.position().rank;
  const EvenBlocks shares(segments.elements(segment), lanes);
  std::vector<std::size_t> counts(static_cast<std::size_t>(context.local_size()));
  for (int lane = 0; lane < lanes; ++lane) counts[static_cast<std::size_t>(lane)] = shares.elements(lane);
  const std::size_t begin = segments.begin(segment);
  const std::size_t own_elements = counts[static_cast<std::size_t>(own)];
  return {begin, begin + shares.begin(std::min(own, lanes)), own_elements, std::move(counts)};
}

bool helps_few_lanes(const HierarchyContext& context) { return 2 * context.lanes <= context.local_size(); }

namespace {

/// Each member fetches what the members with a lane have, so all copy at the same time.
Task<> spread_shares(HierarchyContext& context, const CollectiveCall& call, const SegmentShares& shares) {
  std::byte* data = call.output + shares.begin * size_of(call.dtype);
  for (int lane = 0; lane < context.lanes; ++lane) {
    const std::size_t elements = shares.counts[static_cast<std::size_t>(lane)];
    if (elements > 0) co_await spread_on_node(context, call.dtype, data, elements, lane);
    data += elements * size_of(call.dtype);
  }
}

}  // namespace

Task<> all_gather_on_node(HierarchyContext& context, const CollectiveCall& call,
                          const SegmentShares& shares) {
  if (helps_few_lanes(context)) return spread_shares(context, call, shares);
  const std::size_t size = size_of(call.dtype);
  CollectiveCall gathering = call;
  gathering.kind = CollectiveKind::kAllGather;
  gathering.elements = shares.own_elements;
  gathering.input = call.output + shares.own_begin * size;
  gathering.output = call.output + shares.begin * size;
  return on_node(context, gathering, shares.counts);
}

Segments segments_of(const HierarchyContext& context, const CollectiveCall& call, std::size_t share_bytes) {
  return {call.elements, share_bytes / size_of(call.dtype) * static_cast<std::size_t>(context.lanes)};
}

}  // namespace cohort::network
