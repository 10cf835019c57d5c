// The reduces and broadcasts along a lane.
#include <cohort/collective/copy_bytes.h>

#include "lane_algorithms.h"

namespace cohort::network {

Task<> binomial_reduce(Lane lane, Part part, int root, Arithmetic arithmetic) {
  const std::size_t bytes = arithmetic.bytes(part.elements);
  const int distance_to_root = lane.neighbour(-root);  // the root counts as 0
  const Wire::Scratch scratch = lane.scratch(bytes);
  const std::byte* sum = part.input;
  for (int reach = 1; reach < lane.size(); reach *= 2) {
    if ((distance_to_root & reach) != 0) {
      Transfer sending = lane.send(lane.neighbour(-reach), part.tag, sum, bytes);
      co_await until([&] { return sending.done(); });
      co_return;
    }
    if (distance_to_root + reach >= lane.size()) continue;
    Transfer receiving = lane.receive(lane.neighbour(reach), part.tag, scratch.data(), bytes);
    co_await until([&] { return receiving.done(); });
    arithmetic.combine(sum, scratch.data(), part.output, part.elements);
    sum = part.output;
  }
  if (sum != part.output) copy_bytes(part.output, sum, bytes);  // a lane of one
}

Task<> ring_reduce(Lane lane, Part part, int root, Arithmetic arithmetic) {
  if (lane.size() == 1 && part.input != part.output)
    copy_bytes(part.output, part.input, arithmetic.bytes(part.elements));
  co_await ring_reduce_scatter(lane, part, arithmetic);
  co_await gather_blocks(lane, part, root, size_of(arithmetic.dtype));
}

constinit const LaneAlgorithm kBinomialReduce{.name = "two_level_binomial_reduce",
                                              .kind = CollectiveKind::kReduce,
                                              .cost = [](const LaneShape& lane, double bytes) -> LaneCost {
                                                const double rounds = lane.doublings + lane.folds;
                                                return {rounds, rounds * bytes, rounds * bytes};
                                              },
                                              .part_bytes = part_of_one_message,
                                              .run =
                                                  [](const PartCall& call) {
                                                    return binomial_reduce(call.lane, call.part, call.root,
                                                                           call.arithmetic);
                                                  }};

constinit const LaneAlgorithm kHalvingReduce{.name = "two_level_halving_reduce",
                                             .kind = CollectiveKind::kReduce,
                                             .cost = halving_cost,
                                             .part_bytes = part_of_two_messages,
                                             .run = [](const PartCall& call) {
                                               return halving_reduce(call.lane, call.part, call.root,
                                                                     call.arithmetic);
                                             }};

constinit const LaneAlgorithm kRingReduce{
    .name = "two_level_ring_reduce",
    .kind = CollectiveKind::kReduce,
    .cost = [](const LaneShape& lane, double bytes) -> LaneCost {
      return {lane.members, 2 * lane.ring_fraction * bytes, lane.ring_fraction * bytes};
    },
    .part_bytes = part_of_blocks,
    .run =
        [](const PartCall& call) { return ring_reduce(call.lane, call.part, call.root, call.arithmetic); }};

Task<> binomial_broadcast(Lane lane, Part part, int root, std::size_t element_bytes) {
  const std::size_t bytes = part.elements * element_bytes;
  const int distance_to_root = lane.neighbour(-root);  // the root counts as 0
  int reach = 1;                                       // members nearer than this have the data
  if (distance_to_root > 0) {
    while (reach * 2 <= distance_to_root) reach *= 2;
    Transfer receiving = lane.receive(lane.neighbour(-reach), part.tag, part.output, bytes);
    co_await until([&] { return receiving.done(); });
    reach *= 2;
  }
  std::vector<Transfer> sending;
  for (; distance_to_root + reach < lane.size(); reach *= 2)
    sending.push_back(lane.send(lane.neighbour(reach), part.tag, part.output, bytes));
  for (Transfer& transfer : sending) co_await until([&] { return transfer.done(); });
}

Task<> scatter_all_gather_broadcast(Lane lane, Part part, int root, std::size_t element_bytes) {
  const EvenBlocks blocks(part.elements, lane.size());
  const auto place_of = [&](int block) { return part.output + blocks.begin(block) * element_bytes; };
  const auto bytes_of = [&](int block) { return blocks.elements(block) * element_bytes; };
  if (lane.index() == root) {
    std::vector<Transfer> sending;
    for (int other = 0; other < lane.size(); ++other) {
      if (other != root) sending.push_back(lane.send(other, part.tag, place_of(other), bytes_of(other)));
    }
    for (Transfer& transfer : sending) co_await until([&] { return transfer.done(); });
  } else {
    Transfer receiving = lane.receive(root, part.tag, place_of(lane.index()), bytes_of(lane.index()));
    co_await until([&] { return receiving.done(); });
  }
  co_await ring_all_gather(lane, part, element_bytes);
}

constinit const LaneAlgorithm kBinomial{.name = "two_level_binomial",
                                        .kind = CollectiveKind::kBroadcast,
                                        .cost = [](const LaneShape& lane, double bytes) -> LaneCost {
                                          const double rounds = lane.doublings + lane.folds;
                                          return {rounds, rounds * bytes, 0};
                                        },
                                        .part_bytes = part_of_one_message,
                                        .run =
                                            [](const PartCall& call) {
                                              return binomial_broadcast(call.lane, call.part, call.root,
                                                                        size_of(call.arithmetic.dtype));
                                            }};

constinit const LaneAlgorithm kHalvingBroadcast{
    .name = "two_level_halving_broadcast",
    .kind = CollectiveKind::kBroadcast,
    .cost = [](const LaneShape& lane, double bytes) -> LaneCost {
      return {2 * (lane.doublings + lane.folds), (2 * lane.ring_fraction + 2 * lane.folds) * bytes, 0, 2};
    },
    .part_bytes = part_of_two_messages,
    .run =
        [](const PartCall& call) {
          return halving_broadcast(call.lane, call.part, call.root, size_of(call.arithmetic.dtype));
        }};

constinit const LaneAlgorithm kScatterAllGather{
    .name = "two_level_scatter_all_gather",
    .kind = CollectiveKind::kBroadcast,
    .cost = [](const LaneShape& lane, double bytes) -> LaneCost {
      return {2 * (lane.members - 1), 2 * lane.ring_fraction * bytes, 0};
    },
    .part_bytes = part_of_blocks,
    .run =
        [](const PartCall& call) {
          return scatter_all_gather_broadcast(call.lane, call.part, call.root,
                                              size_of(call.arithmetic.dtype));
        }};

}  // namespace cohort::network
