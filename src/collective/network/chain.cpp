#include "chain.h"

#include <algorithm>
#include <vector>

#include <cohort/collective/reduction.h>

#include "cost_model.h"

namespace cohort::network {

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
