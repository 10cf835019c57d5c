#include "call_plan.h"

#include <algorithm>
#include <cstring>

#include <cohort/collective/copy_bytes.h>
#include <cohort/collective/reduction.h>

namespace cohort::node {
namespace {

CallDetails details_of(const CollectiveCall& call) {
  if (call.counts.empty()) return {call.elements, call.layout, call.root};
  const CallSignature exact = signature(call, 0);
  return {exact.elements, exact.layout, exact.root};
}

constexpr std::uint64_t kExactElements = std::uint64_t{1} << 16;
constexpr std::int64_t kExactRoots = 32;

/// Whether the fingerprint says all of it.
bool is_exact(const CallDetails& details) noexcept {
  return details.elements < kExactElements && details.layout == 0 && details.root < kExactRoots;
}

/// 32 bits of what members must agree on. Exact ones are like no other call's: kind, dtype and operator
/// have 11 bits, the root 5, the elements 16. Otherwise the rest is mixed into the last ones.
std::uint32_t fingerprint(const CollectiveCall& call, const CallDetails& details) noexcept {
  constexpr auto kKinds =
      static_cast<std::uint32_t>(std::ranges::count(kCollectives, false, &CollectiveTraits::is_message));
  constexpr auto kDTypes = static_cast<std::uint32_t>(kAllDTypes.size());
  constexpr std::uint32_t kOps = 7;
  static_assert(2 * kKinds * kDTypes * kOps <= std::uint32_t{1} << 11,
                "kind, dtype and operator need more bits of the fingerprint");
  std::uint32_t head = is_exact(details) ? 0 : 1;
  head = head * kKinds + static_cast<std::uint32_t>(call.kind);
  head = head * kDTypes + static_cast<std::uint32_t>(call.dtype);
  head = head * kOps + static_cast<std::uint32_t>(call.op);
  const auto root = static_cast<std::uint32_t>(details.root);
  const std::uint64_t rest = details.elements / kExactElements ^ details.layout ^
                             static_cast<std::uint64_t>(root / kExactRoots) << 40;
  const auto mixed = static_cast<std::uint32_t>(rest * 0x9e3779b97f4a7c15u >> 48);
  return head << 21 | static_cast<std::uint32_t>(root % kExactRoots) << 16 |
         (static_cast<std::uint32_t>(details.elements % kExactElements) ^ mixed);
}

void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kShort = 512;  // for which the C library is as fast, without a look at the processor
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

void CallPlanner::make_plan(const CollectiveCall& call) {
  // Calls with counts are planned each time: no member is -1, so this key fits no call.
  planned_ = call.counts.empty()
                 ? PlanKey{call.elements, call.layout, call.root, call.op, call.dtype, call.kind}
                 : PlanKey{};
  const CallDetails details = details_of(call);
  const std::size_t bytes = contributed_bytes(call, members_);
  // Members must also make an urgent call at the same place among all calls: the details have its number.
  const bool payload_has_details = !is_exact(details) || priority_ == Priority::kUrgent;
  const bool is_eager =
      may_be_eager_ && has_root(call.kind) && !payload_has_details && bytes <= kEagerCallBytes;
  plan_ = {fingerprint(call, details),
           details,
           payload_has_details,
           block_elements(call),
           bytes,
           bytes <= kPayloadBytes && !payload_has_details,
           is_eager,
           traits_of(call.kind).pattern,
           reduces(call.kind) ? reduction_kernel(call.dtype, call.op) : nullptr,
           pack_unnumbered(call)};
}

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
  if (call.counts.empty() && range.elements == call.elements) {  // the blocks lie in the cell as in the input
    copy(cell, call.input, blocks * call.elements * size);
    return;
  }
  for (std::size_t index = 0; index < blocks; ++index) {
    const Block block = block_of(call, static_cast<int>(index));
    copy(cell + index * range.elements * size, at(call.input, (block.begin + range.begin) * size),
         within(range, block.elements) * size);
  }
}

void collect_from_root(const CollectiveCall& call, const Position& position, const Range& range,
                       const std::byte* cell) {
  const std::size_t size = size_of(call.dtype);
  std::byte* const output = at(call.output, range.begin * size);
  const bool is_root = position.rank == call.root;
  if (call.kind == CollectiveKind::kBroadcast) {
    if (!is_root) copy(output, cell, range.elements * size);
    return;
  }
  const Block block = block_of(call, position.rank);
  const std::size_t own_block = static_cast<std::size_t>(position.rank) * range.elements * size;
  copy(output, is_root ? at(call.input, (block.begin + range.begin) * size) : cell + own_block,
       within(range, block.elements) * size);
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
    case CollectiveKind::kScatter: return collect_from_root(call, position, range, cells[root]);
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
