#include "contribution.h"

#include <algorithm>
#include <cstring>

#include <cohort/collective/copy_bytes.h>
#include <cohort/collective/reduction.h>

namespace cohort::node {
namespace {

void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kShort = 256;  // for which the C library is as fast, without a look at the processor
  if (bytes == 0 || to == from) return;
  if (bytes <= kShort)
    std::memcpy(to, from, bytes);
  else
    copy_bytes(to, from, bytes);
}

/// `offset` bytes into a buffer, which may be null where this member gives or takes nothing.
template <class Byte>
Byte* at(Byte* buffer, std::size_t offset) {
  return buffer == nullptr ? nullptr : buffer + offset;
}

/// The part of `range` that lies within a block of `elements`.
std::size_t within(const Range& range, std::size_t elements) {
  return std::min(range.elements, elements - std::min(range.begin, elements));
}

/// The same for a part of the cells: what lies `cell_offset` bytes into each.
void reduce_cells_at(std::size_t cell_offset, const CollectiveCall& call, ReductionKernel kernel,
                     const Position& position, const Range& range, const std::byte* own_input,
                     std::span<const std::byte*> cells, bool take_over) {
  if (range.elements == 0) return;
  for (const std::byte*& cell : cells) cell += cell_offset;
  const std::size_t size = size_of(call.dtype);
  reduce_cells(kernel, position, range.elements, range.elements * size, own_input,
               call.output + range.begin * size, cells, take_over);
}

}  // namespace

std::size_t block_elements(const CollectiveCall& call) noexcept {
  return call.counts.empty() ? call.elements : *std::max_element(call.counts.begin(), call.counts.end());
}

Block block_of(const CollectiveCall& call, int member) noexcept {
  const auto index = static_cast<std::size_t>(member);
  if (call.counts.empty()) return {index * call.elements, call.elements};
  std::size_t begin = 0;
  for (std::size_t i = 0; i < index; ++i) begin += call.counts[i];
  return {begin, call.counts[index]};
}

void contribute(const CollectiveCall& call, const Position& position, const Range& range, std::byte* cell) {
  const bool root_alone = traits_of(call.kind).pattern == CollectiveTraits::Pattern::kFromRoot;
  if (root_alone && position.rank != call.root) return;
  const std::size_t size = size_of(call.dtype);
  const std::size_t blocks = blocks_brought(call.kind, position.size);
  if (blocks == 1) {
    copy(cell, at(call.input, range.begin * size), within(range, call.elements) * size);
    return;
  }
  for (std::size_t index = 0; index < blocks; ++index) {
    const Block block = block_of(call, static_cast<int>(index));
    copy(cell + index * range.elements * size, at(call.input, (block.begin + range.begin) * size),
         within(range, block.elements) * size);
  }
}

void collect(const CollectiveCall& call, ReductionKernel kernel, const Position& position, const Range& range,
             std::span<const std::byte*> cells, bool take_over) {
  const std::size_t size = size_of(call.dtype);
  const auto rank = static_cast<std::size_t>(position.rank);
  const auto root = static_cast<std::size_t>(call.root);
  const std::size_t own_block = rank * range.elements * size;  // within a cell of one block per member
  std::byte* const output = at(call.output, range.begin * size);
  switch (call.kind) {
    case CollectiveKind::kReduce:
      if (rank != root) return;
      [[fallthrough]];
    case CollectiveKind::kAllReduce:
      return reduce_cells_at(0, call, kernel, position, range, at(call.input, range.begin * size), cells,
                             take_over);
    case CollectiveKind::kReduceScatter: {
      const Block block = block_of(call, position.rank);
      return reduce_cells_at(own_block, call, kernel, position, {range.begin, within(range, block.elements)},
                             at(call.input, (block.begin + range.begin) * size), cells, take_over);
    }
    case CollectiveKind::kBroadcast:
      if (rank != root) copy(output, cells[root], range.elements * size);
      return;
    case CollectiveKind::kScatter: {
      const Block block = block_of(call, position.rank);
      copy(output,
           rank == root ? at(call.input, (block.begin + range.begin) * size) : cells[root] + own_block,
           within(range, block.elements) * size);
      return;
    }
    case CollectiveKind::kGather:
      if (rank != root) return;
      [[fallthrough]];
    case CollectiveKind::kSplit:
    case CollectiveKind::kAllGather:
      for (std::size_t member = 0; member < cells.size(); ++member) {
        const Block block = block_of(call, static_cast<int>(member));
        const std::byte* from = member == rank ? at(call.input, range.begin * size) : cells[member];
        copy(at(output, block.begin * size), from, within(range, block.elements) * size);
      }
      return;
    case CollectiveKind::kAllToAll:
      for (std::size_t member = 0; member < cells.size(); ++member) {
        const Block block = block_of(call, position.rank);
        const std::byte* from =
            member == rank ? at(call.input, (block.begin + range.begin) * size) : cells[member] + own_block;
        copy(at(output, member * block.elements * size), from, within(range, block.elements) * size);
      }
      return;
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: return;
  }
}

}  // namespace cohort::node
