#include "reduce.h"

#include <cohort/collective/copy_bytes.h>

#include "halving_doubling.h"
#include "ring.h"

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

constinit const LaneAlgorithm kHalvingReduce{
    .name = "two_level_halving_reduce",
    .kind = CollectiveKind::kReduce,
    .cost = [](const LaneShape& lane, double bytes) -> LaneCost {
      return {2 * (lane.doublings + lane.folds), (2 * lane.ring_fraction + 2 * lane.folds) * bytes,
              (lane.ring_fraction + lane.folds) * bytes, 2};
    },
    .part_bytes = [](int /*members*/, std::size_t message_bytes) { return 2 * message_bytes; },
    .run =
        [](const PartCall& call) {
          return halving_reduce(call.lane, call.part, call.root, call.arithmetic);
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

}  // namespace cohort::network
