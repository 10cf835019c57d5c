#include "halving_doubling.h"

#include <cohort/collective/copy_bytes.h>
#include <cohort/collective/reduction.h>

#include "fold.h"

namespace cohort::network {
namespace {

/// The blocks that a member is still responsible for.
struct Span {
  int first = 0;
  int last = 0;

  [[nodiscard]] int middle() const noexcept { return (first + last) / 2; }
  [[nodiscard]] Span half(bool upper) const noexcept {
    return upper ? Span{middle(), last} : Span{first, middle()};
  }
};

/// The part and its blocks, in bytes.
struct Cut {
  EvenBlocks blocks;
  std::size_t element_bytes;

  [[nodiscard]] std::size_t begin(const Span& span) const { return blocks.begin(span.first) * element_bytes; }
  [[nodiscard]] std::size_t elements(const Span& span) const {
    return blocks.elements(span.first, span.last);
  }
  [[nodiscard]] std::size_t bytes(const Span& span) const { return elements(span) * element_bytes; }
};

/// Halves until one block is left, which is this member's; `source` is where the data begins.
Task<> halve(Lane lane, Part part, Arithmetic arithmetic, const Fold& fold, const Cut& cut,
             const std::byte* source) {
  const Wire::Scratch scratch = lane.scratch(arithmetic.bytes(part.elements) / 2 + size_of(arithmetic.dtype));
  Span span{0, fold.active_members()};
  for (int distance = fold.active_members() / 2; distance > 0; distance /= 2) {
    const bool upper = (fold.number() & distance) != 0;
    const int other = fold.number() ^ distance;
    const Span kept = span.half(upper);
    const Span given = span.half(!upper);
    Transfer receiving = lane.receive(fold.member(other), part.tag, scratch.data(), cut.bytes(kept));
    Transfer sending = lane.send(fold.member(other), part.tag, source + cut.begin(given), cut.bytes(given));
    co_await until([&] { return receiving.done() && sending.done(); });
    const std::size_t begin = cut.begin(kept);
    arithmetic.combine(source + begin, scratch.data(), part.output + begin, cut.elements(kept));
    source = part.output;
    span = kept;
  }
}

/// What a member has before it doubles by `distance`.
Span span_of(int number, int distance) {
  const int first = number / distance * distance;
  return {first, first + distance};
}

/// Undoes the halving: doubles from this member's block to all.
Task<> redouble(Lane lane, Part part, const Fold& fold, const Cut& cut) {
  for (int distance = 1; distance < fold.active_members(); distance *= 2) {
    const int other = fold.number() ^ distance;
    const Span own = span_of(fold.number(), distance);
    const Span theirs = span_of(other, distance);
    Transfer receiving =
        lane.receive(fold.member(other), part.tag, part.output + cut.begin(theirs), cut.bytes(theirs));
    Transfer sending = lane.send(fold.member(other), part.tag, part.output + cut.begin(own), cut.bytes(own));
    co_await until([&] { return receiving.done() && sending.done(); });
  }
}

/// Undoes it for the member of one number only: of each pair, the one nearer to it gets the other's blocks.
Task<> redouble_at(int number, Lane lane, Part part, const Fold& fold, const Cut& cut) {
  for (int distance = 1; distance < fold.active_members(); distance *= 2) {
    const int other = fold.number() ^ distance;
    if (((fold.number() ^ number) & distance) != 0) {
      const Span own = span_of(fold.number(), distance);
      Transfer sending =
          lane.send(fold.member(other), part.tag, part.output + cut.begin(own), cut.bytes(own));
      co_await until([&] { return sending.done(); });
      co_return;
    }
    const Span theirs = span_of(other, distance);
    Transfer receiving =
        lane.receive(fold.member(other), part.tag, part.output + cut.begin(theirs), cut.bytes(theirs));
    co_await until([&] { return receiving.done(); });
  }
}

/// The same backwards: from the member of one number, which has all, each gets its block.
Task<> halve_from(int number, Lane lane, Part part, const Fold& fold, const Cut& cut) {
  const int way = fold.number() ^ number;
  for (int distance = fold.active_members() / 2; distance > 0; distance /= 2) {
    if ((way & (distance - 1)) != 0) continue;  // nothing has come this far yet
    const int other = fold.number() ^ distance;
    const bool receives = (way & distance) != 0;
    const Span moved = span_of(receives ? fold.number() : other, distance);
    std::byte* const data = part.output + cut.begin(moved);
    Transfer transfer = receives ? lane.receive(fold.member(other), part.tag, data, cut.bytes(moved))
                                 : lane.send(fold.member(other), part.tag, data, cut.bytes(moved));
    co_await until([&] { return transfer.done(); });
  }
}

/// All of one member's output becomes that of another one.
Task<> hand_over(int from, int to, Lane lane, Part part, std::size_t bytes) {
  if (from == to || (lane.index() != from && lane.index() != to)) co_return;
  Transfer transfer = lane.index() == from ? lane.send(to, part.tag, part.output, bytes)
                                           : lane.receive(from, part.tag, part.output, bytes);
  co_await until([&] { return transfer.done(); });
}

}  // namespace

Task<> halving_doubling_all_reduce(Lane lane, Part part, Arithmetic arithmetic) {
  const Fold fold(lane);
  const Cut cut{EvenBlocks(part.elements, fold.active_members()), size_of(arithmetic.dtype)};
  const std::byte* const source = co_await fold.enter(lane, part, arithmetic);
  if (!fold.sits_out()) {
    if (fold.active_members() == 1 && source != part.output)
      copy_bytes(part.output, source, arithmetic.bytes(part.elements));
    co_await halve(lane, part, arithmetic, fold, cut, source);
    co_await redouble(lane, part, fold, cut);
  }
  co_await fold.leave(lane, part, cut.element_bytes);
}

Task<> halving_reduce(Lane lane, Part part, int root, Arithmetic arithmetic) {
  const Fold fold(lane);
  const Cut cut{EvenBlocks(part.elements, fold.active_members()), size_of(arithmetic.dtype)};
  const std::byte* const source = co_await fold.enter(lane, part, arithmetic);
  const int number = fold.number_for(root);
  if (!fold.sits_out()) {
    if (fold.active_members() == 1 && source != part.output)
      copy_bytes(part.output, source, arithmetic.bytes(part.elements));
    co_await halve(lane, part, arithmetic, fold, cut, source);
    co_await redouble_at(number, lane, part, fold, cut);
  }
  // The root may have sat out.
  co_await hand_over(fold.member(number), root, lane, part, arithmetic.bytes(part.elements));
}

Task<> halving_broadcast(Lane lane, Part part, int root, std::size_t element_bytes) {
  const Fold fold(lane);
  const Cut cut{EvenBlocks(part.elements, fold.active_members()), element_bytes};
  const int number = fold.number_for(root);
  co_await hand_over(root, fold.member(number), lane, part, part.elements * element_bytes);
  if (!fold.sits_out()) {
    co_await halve_from(number, lane, part, fold, cut);
    co_await redouble(lane, part, fold, cut);
  }
  co_await fold.leave(lane, part, element_bytes);
}

constinit const LaneAlgorithm kHalvingDoubling{
    .name = "two_level_halving_doubling",
    .kind = CollectiveKind::kAllReduce,
    .cost = [](const LaneShape& lane, double bytes) -> LaneCost {
      return {2 * (lane.doublings + lane.folds), (2 * lane.ring_fraction + 2 * lane.folds) * bytes,
              (lane.ring_fraction + lane.folds) * bytes, 2};
    },
    .part_bytes = [](int /*members*/, std::size_t message_bytes) { return 2 * message_bytes; },
    .run =
        [](const PartCall& call) {
          return halving_doubling_all_reduce(call.lane, call.part, call.arithmetic);
        }};

}  // namespace cohort::network
