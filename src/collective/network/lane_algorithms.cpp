// The table of the algorithms along a lane, and the all-reduces that combine members in any order.
#include "lane_algorithms.h"

#include <array>
#include <bit>

#include <cohort/collective/copy_bytes.h>
#include <cohort/collective/reduction.h>

namespace cohort::network {

std::span<const LaneAlgorithm* const> lane_algorithms() noexcept {
  static constexpr std::array kAll{&kRecursiveDoubling,
                                   &kRing,
                                   &kHalvingDoubling,
                                   &kRankOrder,
                                   &kChain,
                                   &kBinomial,
                                   &kScatterAllGather,
                                   &kHalvingBroadcast,
                                   &kBinomialReduce,
                                   &kHalvingReduce,
                                   &kRingReduce};
  return kAll;
}

namespace {

/// What algorithms over powers of two do with the other members: of p = 2^k + r, the first 2r fold in pairs.
/// The even one of a pair hands its data to the odd one, sits out, and is handed the result at the end.
class Fold {
 public:
  explicit Fold(const Lane& lane);

  /// Members that take part after folding: a power of two.
  [[nodiscard]] int active_members() const noexcept { return active_members_; }
  [[nodiscard]] bool sits_out() const noexcept { return number_ < 0; }
  /// This member's number among the active ones.
  [[nodiscard]] int number() const noexcept { return number_; }
  /// The member of the lane that has a number among the active ones.
  [[nodiscard]] int member(int number) const noexcept {
    return number < pairs_ ? 2 * number + 1 : number + pairs_;
  }

  /// The number of the member that has the data of the lane's `index` after folding: its own, or its pair's.
  [[nodiscard]] int number_for(int index) const noexcept {
    return index < 2 * pairs_ ? index / 2 : index - pairs_;
  }

  /// Folds. Returns where an active member then finds its data: the input, or the output.
  [[nodiscard]] Task<const std::byte*> enter(Lane lane, Part part, Arithmetic arithmetic) const;
  /// Hands the result to the members that sat out.
  [[nodiscard]] Task<> leave(Lane lane, Part part, std::size_t element_bytes) const;

 private:
  [[nodiscard]] bool has_pair() const noexcept { return index_ < 2 * pairs_; }
  int index_;
  int active_members_;
  int pairs_;
  int number_;
};

Fold::Fold(const Lane& lane)
    : index_(lane.index()),
      active_members_(static_cast<int>(std::bit_floor(static_cast<unsigned>(lane.size())))),
      pairs_(lane.size() - active_members_) {
  const bool even = index_ % 2 == 0;
  number_ = !has_pair() ? index_ - pairs_ : even ? -1 : index_ / 2;
}

Task<const std::byte*> Fold::enter(Lane lane, Part part, Arithmetic arithmetic) const {
  if (!has_pair()) co_return part.input;
  const std::size_t bytes = arithmetic.bytes(part.elements);
  if (sits_out()) {
    Transfer sending = lane.send(index_ + 1, part.tag, part.input, bytes);
    co_await until([&] { return sending.done(); });
    co_return part.input;
  }
  const Wire::Scratch scratch = lane.scratch(bytes);
  Transfer receiving = lane.receive(index_ - 1, part.tag, scratch.data(), bytes);
  co_await until([&] { return receiving.done(); });
  arithmetic.combine(scratch.data(), part.input, part.output, part.elements);
  co_return part.output;
}

Task<> Fold::leave(Lane lane, Part part, std::size_t element_bytes) const {
  if (!has_pair()) co_return;
  const std::size_t bytes = part.elements * element_bytes;
  Transfer transfer = sits_out() ? lane.receive(index_ + 1, part.tag, part.output, bytes)
                                 : lane.send(index_ - 1, part.tag, part.output, bytes);
  co_await until([&] { return transfer.done(); });
}

}  // namespace

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

constinit const LaneAlgorithm kHalvingDoubling{.name = "two_level_halving_doubling",
                                               .kind = CollectiveKind::kAllReduce,
                                               .cost = halving_cost,
                                               .part_bytes = part_of_two_messages,
                                               .run = [](const PartCall& call) {
                                                 return halving_doubling_all_reduce(call.lane, call.part,
                                                                                    call.arithmetic);
                                               }};

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
