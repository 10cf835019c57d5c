// The all-reduces along a lane that combine the members in the order of their ranks.
#include <algorithm>
#include <vector>

#include <cohort/collective/reduction.h>

#include "cost_model.h"
#include "lane_algorithms.h"

namespace cohort::network {

Task<> rank_order_reduce_scatter(Lane lane, const Topology& topology, Part part, std::size_t stride,
                                 Arithmetic arithmetic) {
  const EvenBlocks blocks(part.elements, lane.size());
  const std::size_t own_bytes = arithmetic.bytes(blocks.elements(lane.index()));
  const std::byte* const own_block = part.input + arithmetic.bytes(blocks.begin(lane.index()));
  const Wire::Scratch scratch = lane.scratch(own_bytes * static_cast<std::size_t>(topology.members()));

  std::vector<const std::byte*> contributions(static_cast<std::size_t>(topology.members()));
  std::vector<Transfer> transfers;
  for (int step = 0; step < lane.size(); ++step) {
    const int node = lane.neighbour(-step);
    for (const int rank : topology.members_of(node)) {
      const auto index = static_cast<std::size_t>(rank);
      if (step == 0) {
        contributions[index] = own_block + static_cast<std::size_t>(topology.local_rank_of(rank)) * stride;
        continue;
      }
      std::byte* const to = scratch.data() + index * own_bytes;
      contributions[index] = to;
      transfers.push_back(lane.receive(node, part.tag, to, own_bytes));
    }
  }
  for (int step = 1; step < lane.size(); ++step) {
    const int node = lane.neighbour(step);
    const std::byte* block = part.input + arithmetic.bytes(blocks.begin(node));
    for (int member = 0; member < topology.members_on(lane.index()); ++member, block += stride)
      transfers.push_back(lane.send(node, part.tag, block, arithmetic.bytes(blocks.elements(node))));
  }
  for (Transfer& transfer : transfers) co_await until([&] { return transfer.done(); });

  if (own_bytes == 0) co_return;
  reduce_elements(arithmetic.dtype, arithmetic.op, contributions,
                  part.output + arithmetic.bytes(blocks.begin(lane.index())), blocks.elements(lane.index()));
}

namespace {

Task<> rank_order_all_reduce(Lane lane, const Topology& topology, Part part, std::size_t stride,
                             Arithmetic arithmetic) {
  co_await rank_order_reduce_scatter(lane, topology, part, stride, arithmetic);
  co_await ring_all_gather(lane, part, size_of(arithmetic.dtype));
}

}  // namespace

constinit const LaneAlgorithm kRankOrder{
    .name = "two_level_rank_order",
    .kind = CollectiveKind::kAllReduce,
    .in_rank_order = true,
    .divides_mean = true,
    .cost = [](const LaneShape& lane, double bytes) -> LaneCost {
      return {lane.members, (lane.members_of_node + 1) * (lane.members - 1) / lane.members * bytes,
              lane.members_of_node * bytes};
    },
    .part_bytes = part_of_blocks,
    .run =
        [](const PartCall& call) {
          return rank_order_all_reduce(call.lane, *call.topology, call.part, call.stride, call.arithmetic);
        }};

Task<> chain_all_reduce(Lane lane, const Topology& topology, Part part, std::size_t stride,
                        Arithmetic arithmetic) {
  const int before = lane.index() - 1;
  const int behind = lane.index() + 1;
  const bool is_last = behind == lane.size();
  const std::size_t bytes = arithmetic.bytes(part.elements);
  const Wire::Scratch scratch = lane.scratch(bytes);

  std::vector<const std::byte*> inputs;
  if (before >= 0) {
    Transfer receiving = lane.receive(before, part.tag, scratch.data(), bytes);
    co_await until([&] { return receiving.done(); });
    inputs.push_back(scratch.data());
  }
  for (int member = 0; member < topology.members_on(lane.index()); ++member)
    inputs.push_back(part.input + static_cast<std::size_t>(member) * stride);
  std::byte* const sum = is_last ? part.output : scratch.data();
  reduce_elements(arithmetic.dtype, arithmetic.op, inputs, sum, part.elements);

  if (!is_last) {
    Transfer sending = lane.send(behind, part.tag, sum, bytes);
    co_await until([&] { return sending.done(); });
    Transfer receiving = lane.receive(behind, part.tag, part.output, bytes);
    co_await until([&] { return receiving.done(); });
  }
  if (before >= 0) {
    Transfer sending = lane.send(before, part.tag, part.output, bytes);
    co_await until([&] { return sending.done(); });
  }
}

constinit const LaneAlgorithm kChain{
    .name = "two_level_chain",
    .kind = CollectiveKind::kAllReduce,
    .in_rank_order = true,
    .cost = [](const LaneShape& lane, double bytes) -> LaneCost {
      // A chain that is longer than there are parts in flight is never full.
      const double waits = std::max(1.0, (lane.members - 1) / static_cast<double>(kPartsInFlight));
      return {2 * (lane.members - 1), (lane.members == 2 ? 1 : 2 * waits) * bytes, bytes};
    },
    .part_bytes = part_of_one_message,
    .run =
        [](const PartCall& call) {
          return chain_all_reduce(call.lane, *call.topology, call.part, call.stride, call.arithmetic);
        }};

}  // namespace cohort::network
