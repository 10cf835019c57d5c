#include "ring.h"

#include <cohort/collective/copy_bytes.h>
#include <cohort/collective/reduction.h>

namespace cohort::network {

Task<> ring_reduce_scatter(Lane lane, Part part, Arithmetic arithmetic) {
  const EvenBlocks blocks(part.elements, lane.size());
  const Wire::Scratch scratch = lane.scratch(arithmetic.bytes(blocks.largest()));
  const std::byte* source = part.input;
  Transfer sending;
  for (int round = 0; round < lane.size() - 1; ++round) {
    const int leaving = lane.neighbour(-1 - round);
    const int arriving = lane.neighbour(-2 - round);
    Transfer receiving = lane.receive(lane.neighbour(-1), part.tag, scratch.data(),
                                      arithmetic.bytes(blocks.elements(arriving)));
    sending = lane.send(lane.neighbour(1), part.tag, source + arithmetic.bytes(blocks.begin(leaving)),
                        arithmetic.bytes(blocks.elements(leaving)));
    // The block that leaves now is written again no sooner than in the all-gather.
    co_await until([&] { return receiving.done() && sending.done(); });
    const std::size_t begin = arithmetic.bytes(blocks.begin(arriving));
    arithmetic.combine(scratch.data(), part.input + begin, part.output + begin, blocks.elements(arriving));
    source = part.output;
  }
}

Task<> ring_all_gather(Lane lane, Part part, std::size_t element_bytes) {
  const EvenBlocks blocks(part.elements, lane.size());
  for (int round = 0; round < lane.size() - 1; ++round) {
    const int leaving = lane.neighbour(-round);
    const int arriving = lane.neighbour(-1 - round);
    Transfer receiving =
        lane.receive(lane.neighbour(-1), part.tag, part.output + blocks.begin(arriving) * element_bytes,
                     blocks.elements(arriving) * element_bytes);
    Transfer sending =
        lane.send(lane.neighbour(1), part.tag, part.output + blocks.begin(leaving) * element_bytes,
                  blocks.elements(leaving) * element_bytes);
    co_await until([&] { return receiving.done() && sending.done(); });
  }
}

Task<> ring_all_reduce(Lane lane, Part part, Arithmetic arithmetic) {
  if (lane.size() == 1 && part.input != part.output)
    copy_bytes(part.output, part.input, arithmetic.bytes(part.elements));
  co_await ring_reduce_scatter(lane, part, arithmetic);
  co_await ring_all_gather(lane, part, size_of(arithmetic.dtype));
}

Task<> gather_blocks(Lane lane, Part part, int root, std::size_t element_bytes) {
  const EvenBlocks blocks(part.elements, lane.size());
  const auto place_of = [&](int block) { return part.output + blocks.begin(block) * element_bytes; };
  const auto bytes_of = [&](int block) { return blocks.elements(block) * element_bytes; };
  std::vector<Transfer> transfers;
  if (lane.index() != root) {
    transfers.push_back(lane.send(root, part.tag, place_of(lane.index()), bytes_of(lane.index())));
  } else {
    for (int other = 0; other < lane.size(); ++other) {
      if (other != root) transfers.push_back(lane.receive(other, part.tag, place_of(other), bytes_of(other)));
    }
  }
  for (Transfer& transfer : transfers) co_await until([&] { return transfer.done(); });
}

constinit const LaneAlgorithm kRing{
    .name = "two_level_ring",
    .kind = CollectiveKind::kAllReduce,
    .cost = [](const LaneShape& lane, double bytes) -> LaneCost {
      return {2 * (lane.members - 1), 2 * lane.ring_fraction * bytes, lane.ring_fraction * bytes};
    },
    .part_bytes = part_of_blocks,
    .run = [](const PartCall& call) { return ring_all_reduce(call.lane, call.part, call.arithmetic); }};

}  // namespace cohort::network
