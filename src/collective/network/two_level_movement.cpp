// The collectives of long data that reduce nothing.
#include "two_level.h"

#include <algorithm>
#include <utility>

#include <cohort/collective/copy_bytes.h>
#include <cohort/collective/reduction.h>

#include "collective/node/call_plan.h"
#include "collective/task/task_group.h"
#include "pairwise_exchange.h"

namespace cohort::network {
namespace {

constexpr int kMovementTag = 1;

/// Where a member's block lies in a buffer of all blocks.
struct BlockRange {
  std::size_t offset;
  std::size_t bytes;
};

BlockRange range_of(const CollectiveCall& call, int rank) {
  const node::Block block = node::block_of(call, rank);
  return {block.begin * size_of(call.dtype), block.elements * size_of(call.dtype)};
}

/// The other nodes; each node begins with the one after it, so that not all send to the same one.
std::vector<int> nodes_behind(const Topology& topology) {
  std::vector<int> nodes;
  for (int step = 1; step < topology.nodes(); ++step)
    nodes.push_back((topology.own_node() + step) % topology.nodes());
  return nodes;
}

/// The other nodes in the order in which their data is sent here.
std::vector<int> nodes_before(const Topology& topology) {
  std::vector<int> nodes;
  for (int step = 1; step < topology.nodes(); ++step)
    nodes.push_back((topology.own_node() + topology.nodes() - step) % topology.nodes());
  return nodes;
}

/// Whether the node's engine can see the blocks of its members as one after the other.
bool has_node_part(const HierarchyContext& context) {
  return !context.alone_on_node() && context.topology.local_ranks_are_consecutive();
}

PairwiseExchange exchange_of(HierarchyContext& context, const CollectiveCall& call, std::size_t blocks) {
  const node::Endpoint& endpoint = context.endpoint;
  return {context.wire,
          kMovementTag,
          {.nodes = context.topology.nodes(),
           .blocks = blocks,
           .longest = node::block_elements(call) * size_of(call.dtype)},
          context.constants,
          endpoint.group().timeout(endpoint.as_called(call))};
}

/// Members that exchange blocks with this one through the transport, node by node; those of its own come
/// last.
std::vector<std::vector<int>> remote_members(const HierarchyContext& context, const std::vector<int>& nodes) {
  std::vector<std::vector<int>> members;
  members.reserve(nodes.size() + 1);
  for (const int node : nodes) members.push_back(context.topology.members_of(node));
  if (!has_node_part(context) && !context.alone_on_node()) {
    members.push_back(context.topology.local_members());
    std::erase(members.back(), context.topology.rank());
  }
  return members;
}

void copy_block(const std::byte* from, std::byte* to, std::size_t bytes) {
  if (from != to && bytes > 0) copy_bytes(to, from, bytes);
}

}  // namespace

Task<> two_level_broadcast(HierarchyContext& context, const CollectiveCall& call) {
  const std::size_t size = size_of(call.dtype);
  const int root_node = context.topology.node_of(call.root);
  const bool at_root = context.topology.own_node() == root_node;
  const std::size_t lane_bytes = call.elements * size / static_cast<std::size_t>(context.lanes);
  const LaneAlgorithm& algorithm = context.algorithm(call.kind, lane_bytes);
  const Segments segments = segments_of(
      context, call, algorithm.part_bytes(context.topology.nodes(), context.wire.message_bytes()));
  TaskGroup tasks;

  const auto open = [&](std::size_t segment) -> Task<> {
    const SegmentShares shares = shares_of(context, segments, segment);
    if (at_root) {
      co_await tasks.run_alongside(spread_on_node(context, call.dtype, call.output + shares.begin * size,
                                                  segments.elements(segment),
                                                  context.local_rank_of(call.root)));
    }
    std::byte* const share = call.output + shares.own_begin * size;
    if (context.has_lane()) {
      tasks.add(algorithm.run({.lane = context.lane(),
                               .part = {share, share, shares.own_elements, tag_of_part(segment)},
                               .arithmetic = {.dtype = call.dtype},
                               .root = root_node}));
    }
  };
  const auto close = [&](std::size_t segment) -> Task<> {
    if (context.has_lane()) co_await tasks.wait_for(segment);
    if (at_root || context.alone_on_node()) co_return;
    const SegmentShares shares = shares_of(context, segments, segment);
    co_await tasks.run_alongside(all_gather_on_node(context, call, shares));
  };
  co_await pipeline(segments.count(), kPartsInFlight, open, close);
  context.endpoint.set_algorithm(algorithm.name);
}

Task<> two_level_all_gather(HierarchyContext& context, const CollectiveCall& call) {
  const Topology& topology = context.topology;
  const int rank = topology.rank();
  const BlockRange own = range_of(call, rank);
  copy_block(call.input, call.output + own.offset, own.bytes);

  const std::vector<int> behind = nodes_behind(topology);
  const std::vector<int> before = nodes_before(topology);
  PairwiseExchange exchange = exchange_of(context, call, 1);
  for (std::size_t step = 0; step < behind.size(); ++step) {
    std::vector<Arriving> arriving;  // what this member receives for its node
    for (const int member : topology.members_of(before[step])) {
      if (topology.agent_of(member, topology.own_node()) != rank) continue;
      const BlockRange range = range_of(call, member);
      arriving.push_back({member, call.output + range.offset, range.bytes});
    }
    exchange.add_step({{topology.agent_of(rank, behind[step]), call.output + own.offset, own.bytes}},
                      std::move(arriving));
  }
  TaskGroup tasks;
  tasks.add(exchange.receive());
  tasks.add(exchange.send());

  std::vector<int> nodes = before;
  nodes.insert(nodes.begin(), topology.own_node());
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    if (index > 0) co_await tasks.run_alongside(exchange.arrival(index - 1));
    for (const int member : topology.members_of(nodes[index])) {
      const node::Block block = node::block_of(call, member);
      const int agent = topology.agent_of(member, topology.own_node());
      std::byte* const data = call.output + range_of(call, member).offset;
      co_await tasks.run_alongside(
          spread_on_node(context, call.dtype, data, block.elements, context.local_rank_of(agent)));
    }
  }
  co_await tasks.wait_for_all();
  context.endpoint.set_algorithm("two_level_pairwise");
}

// One is the mirror image of the other: blocks go to the root, or come from it.
Task<> two_level_gather_or_scatter(HierarchyContext& context, const CollectiveCall& call) {
  const Topology& topology = context.topology;
  const bool gathers = call.kind == CollectiveKind::kGather;
  const bool is_root = topology.rank() == call.root;
  TaskGroup tasks;
  if (is_root) {
    const BlockRange own = range_of(call, call.root);
    copy_block(call.input + (gathers ? 0 : own.offset), call.output + (gathers ? own.offset : 0), own.bytes);
    const std::vector<int> nodes = gathers ? nodes_before(topology) : nodes_behind(topology);
    for (const std::vector<int>& members : remote_members(context, nodes)) {
      for (const int member : members) {
        const BlockRange range = range_of(call, member);
        tasks.add(
            gathers ? stream_from(context.wire, member, kMovementTag, call.output + range.offset, range.bytes)
                    : stream_to(context.wire, member, kMovementTag, call.input + range.offset, range.bytes));
      }
    }
  }
  const bool near_root = topology.node_of(call.root) == topology.own_node();
  if (near_root && has_node_part(context)) {
    CollectiveCall part = call;
    part.root = context.local_rank_of(call.root);
    const std::size_t first = range_of(call, topology.local_members().front()).offset;
    if (gathers && part.output != nullptr) part.output += first;
    if (!gathers && part.input != nullptr) part.input += first;
    co_await tasks.run_alongside(on_node(context, part));
  } else if (!is_root) {
    const std::size_t bytes = call.elements * size_of(call.dtype);
    tasks.add(gathers ? stream_to(context.wire, call.root, kMovementTag, call.input, bytes)
                      : stream_from(context.wire, call.root, kMovementTag, call.output, bytes));
  }
  co_await tasks.wait_for_all();
  context.endpoint.set_algorithm("two_level_pairwise");
}

Task<> two_level_all_to_all(HierarchyContext& context, const CollectiveCall& call) {
  const Topology& topology = context.topology;
  const std::vector<std::vector<int>> sources = remote_members(context, nodes_before(topology));
  const std::vector<std::vector<int>> targets = remote_members(context, nodes_behind(topology));
  PairwiseExchange exchange =
      exchange_of(context, call, static_cast<std::size_t>(topology.most_members_on_a_node()));
  for (std::size_t step = 0; step < sources.size(); ++step) {
    std::vector<Leaving> leaving;
    for (const int member : targets[step]) {
      const BlockRange range = range_of(call, member);
      leaving.push_back({member, call.input + range.offset, range.bytes});
    }
    std::vector<Arriving> arriving;
    for (const int member : sources[step]) {
      const BlockRange range = range_of(call, member);
      arriving.push_back({member, call.output + range.offset, range.bytes});
    }
    exchange.add_step(std::move(leaving), std::move(arriving));
  }
  TaskGroup tasks;
  tasks.add(exchange.receive());
  tasks.add(exchange.send());
  if (has_node_part(context)) {
    CollectiveCall part = call;
    const std::size_t first = range_of(call, topology.local_members().front()).offset;
    part.input += first;
    part.output += first;
    co_await tasks.run_alongside(on_node(context, part));
  } else {
    const BlockRange own = range_of(call, topology.rank());
    copy_block(call.input + own.offset, call.output + own.offset, own.bytes);
  }
  co_await tasks.wait_for_all();
  context.endpoint.set_algorithm("two_level_pairwise");
}

}  // namespace cohort::network
