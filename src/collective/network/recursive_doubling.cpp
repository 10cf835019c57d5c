#include "recursive_doubling.h"

#include <cohort/collective/copy_bytes.h>
#include <cohort/collective/reduction.h>

#include "fold.h"

namespace cohort::network {

Task<> recursive_doubling_all_reduce(Lane lane, Part part, Arithmetic arithmetic) {
  const Fold fold(lane);
  const std::size_t bytes = arithmetic.bytes(part.elements);
  const std::byte* source = co_await fold.enter(lane, part, arithmetic);
  if (!fold.sits_out()) {
    const Wire::Scratch scratch = lane.scratch(bytes);
    for (int distance = 1; distance < fold.active_members(); distance *= 2) {
      const int other = fold.number() ^ distance;
      Transfer receiving = lane.receive(fold.member(other), part.tag, scratch.data(), bytes);
      Transfer sending = lane.send(fold.member(other), part.tag, source, bytes);
      co_await until([&] { return receiving.done() && sending.done(); });
      // Both sides combine in the same order, so that both get the same bits.
      const bool lower = fold.number() < other;
      arithmetic.combine(lower ? source : scratch.data(), lower ? scratch.data() : source, part.output,
                         part.elements);
      source = part.output;
    }
    if (source != part.output) copy_bytes(part.output, source, bytes);  // a lane of one
  }
  co_await fold.leave(lane, part, size_of(arithmetic.dtype));
}

constinit const LaneAlgorithm kRecursiveDoubling{
    .name = "two_level_recursive_doubling",
    .kind = CollectiveKind::kAllReduce,
    .cost = [](const LaneShape& lane, double bytes) -> LaneCost {
      return {lane.doublings + 2 * lane.folds, (lane.doublings + 2 * lane.folds) * bytes,
              (lane.doublings + lane.folds) * bytes};
    },
    .part_bytes = part_of_one_message,
    .run =
        [](const PartCall& call) {
          return recursive_doubling_all_reduce(call.lane, call.part, call.arithmetic);
        }};

}  // namespace cohort::network
