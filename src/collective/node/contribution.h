// What a member contributes to each kind of collective, and how it makes its result
// from all contributions: the only code that tells the kinds apart when data goes
// through slots and cells.
//
// A member contributes one block of elements or one per member. Large blocks go in
// pieces, each a range of the elements of every block.
#pragma once

#include <cstddef>
#include <span>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/reduction.h>

namespace cohort::node {

struct Position {
  int rank = 0;
  int size = 1;
};

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

/// Copies the elements of `range` that this member contributes to `cell`; nothing if it contributes none.
void contribute(const CollectiveCall& call, const Position& position, const Range& range, std::byte* cell);

/// Makes this member's result from the contributions of all members, which lie in `cells` by rank. Overwrites
/// the pointers in `cells`; this member's own is ignored, since it reads its contribution from its input.
/// `kernel` is for the kinds that reduce. `take_over`: fetches the other member's cell for writing, since
/// this member fills it next.
void collect(const CollectiveCall& call, ReductionKernel kernel, const Position& position, const Range& range,
             std::span<const std::byte*> cells, bool take_over);

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
