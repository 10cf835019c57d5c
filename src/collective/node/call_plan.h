// What follows from a call alone. Before it is announced, its plan: how long it is, which kernel it uses, and
// the fingerprint by which members find out that they have called different things. Then what a member
// contributes to each kind of collective, and how it makes its result from all contributions: the only code
// that tells the kinds apart when data goes through slots and cells.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/reduction.h>

#include "collective/record/call_record.h"
#include "control_block.h"

namespace cohort::node {

struct CallPlan {
  std::uint32_t fingerprint = 0;  ///< of what members must agree on
  CallDetails details = {};       ///< the same in full, for calls that the fingerprint has too few bits for
  bool payload_has_details = false;  ///< the fingerprint is not exact: the payload begins with the details
  std::size_t elements = 0;          ///< of a member's longest block
  std::size_t bytes = 0;             ///< that one member contributes
  bool in_line = false;              ///< the payload is the data, and the fingerprint exact
  bool eager = false;                ///< members that only send do not wait for the others
  CollectiveTraits::Pattern pattern = {};  ///< who contributes, and who has a result
  ReductionKernel kernel = nullptr;        ///< of the kinds that reduce
  PackedCall packed = {};                  ///< as the member's record has it, without the number
};

/// A training step makes the same calls again and again, so the planner keeps its latest plan. The next call
/// most often has the same one: then planning costs a few comparisons.
class CallPlanner {
 public:
  /// For the calls of one priority among so many members. `may_be_eager`: rooted ones of few bytes are.
  CallPlanner(int members, Priority priority, bool may_be_eager) noexcept
      : members_(members), priority_(priority), may_be_eager_(may_be_eager) {}

  /// The plan is overwritten by the next call's.
  [[nodiscard]] const CallPlan& plan(const CollectiveCall& call) {
    const bool alike = call.elements == planned_.elements && call.kind == planned_.kind &&
                       call.dtype == planned_.dtype && call.op == planned_.op && call.root == planned_.root &&
                       call.layout == planned_.layout && call.counts.empty();
    if (!alike) make_plan(call);
    return plan_;
  }

 private:
  /// What tells the plans of two calls apart; calls with counts are planned each time. The bytes are in
  /// another order than in a call: as one word they would be compared with what was just written one by one,
  /// for which the processor waits.
  struct PlanKey {
    std::size_t elements = 0;
    std::uint64_t layout = 0;
    int root = -1;
    ReduceOp op = ReduceOp::kSum;
    DType dtype = DType::kUInt8;
    CollectiveKind kind = CollectiveKind::kBarrier;
  };

  void make_plan(const CollectiveCall& call);

  int members_;
  Priority priority_;
  bool may_be_eager_;
  PlanKey planned_;
  CallPlan plan_;
};

// ---- blocks, ranges and shares

/// Of a member among those of its node.
struct Position {
  int rank = 0;
  int size = 1;
};

/// A member contributes one block of elements or one per member. Large blocks go in pieces, each a range of
/// the elements of every block.
struct Range {
  std::size_t begin = 0;
  std::size_t elements = 0;
};

/// Elements of the longest block; blocks differ in an uneven all-gather, and in parts of larger calls.
[[nodiscard]] std::size_t block_elements(const CollectiveCall& call) noexcept;

/// Blocks that one member contributes: 1, or one per member.
[[nodiscard]] inline std::size_t blocks_brought(CollectiveKind kind, int size) noexcept {
  return traits_of(kind).input == CollectiveTraits::Extent::kAllBlocks ? static_cast<std::size_t>(size) : 1;
}

/// The space that one member's contribution takes.
[[nodiscard]] inline std::size_t contributed_bytes(const CollectiveCall& call, int size) noexcept {
  return blocks_brought(call.kind, size) * block_elements(call) * size_of(call.dtype);
}

/// Where the block of `member` begins, and how many elements it has, in a buffer of all blocks.
struct Block {
  std::size_t begin = 0;
  std::size_t elements = 0;
};
[[nodiscard]] Block block_of(const CollectiveCall& call, int member) noexcept;

/// A member's part of the work of a call, in bytes of the whole.
struct Share {
  std::size_t begin = 0;
  std::size_t bytes = 0;
};

/// Nearly equal shares that begin at cache lines of an aligned buffer, so that no cache line has two writers.
[[nodiscard]] inline Share share_of(int member, int members, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  const std::size_t lines = (bytes + kLine - 1) / kLine;
  const auto edge = [&](int index) {
    return std::min(bytes,
                    lines * static_cast<std::size_t>(index) / static_cast<std::size_t>(members) * kLine);
  };
  return {edge(member), edge(member + 1) - edge(member)};
}

// ---- contributions

/// Copies the elements of `range` that this member contributes to `cell`; nothing if it contributes none.
void contribute(const CollectiveCall& call, const Position& position, const Range& range, std::byte* cell);

/// Makes this member's result from the contributions of all members, which lie in `cells` by rank. Overwrites
/// the pointers in `cells`; this member's own is ignored, since it reads its contribution from its input.
/// `kernel` is for the kinds that reduce. `take_over`: fetches the other member's cell for writing, since
/// this member fills it next.
void collect(const CollectiveCall& call, ReductionKernel kernel, const Position& position, const Range& range,
             std::span<const std::byte*> cells, bool take_over);

/// The part of `collect` for the kinds in which the root alone contributes, to `cell`.
void collect_from_root(const CollectiveCall& call, const Position& position, const Range& range,
                       const std::byte* cell);

/// The part of `collect` that reduces: what lies in `cells`, of which `own_input` takes the place of this
/// member's, to `output`.
inline void reduce_cells(ReductionKernel kernel, const Position& position, std::size_t elements,
                         std::size_t bytes, const std::byte* own_input, std::byte* output,
                         std::span<const std::byte*> cells, bool take_over) {
  // Below, taking the cache lines over costs more than the next call gains.
  constexpr std::size_t kTakeOverBytes = 4096;
  cells[static_cast<std::size_t>(position.rank)] = own_input;
  ReductionHints hints;
  if (take_over && bytes >= kTakeOverBytes && position.size == 2) hints.take_over = 1 - position.rank;
  kernel(cells, {&output, 1}, elements, hints);
}

}  // namespace cohort::node
