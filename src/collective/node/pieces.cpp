#include "pieces.h"

#include <algorithm>

#include <cohort/base/error.h>

#include "tuning.h"

namespace cohort::node {
namespace {

constexpr std::size_t kPiecesBetweenYields = kBytesBetweenYields / kPieceBytes;

}  // namespace

void note_collected(const Endpoint& endpoint, const CollectiveCall& call, const Range& range) {
  if (!endpoint.is_counted() || range.elements == 0) return;
  const Position& position = endpoint.position();
  const CollectiveTraits& traits = traits_of(call.kind);
  if (traits.pattern == CollectiveTraits::Pattern::kToRoot && position.rank != call.root) return;
  for (int member = 0; member < position.size; ++member) {
    if (traits.pattern == CollectiveTraits::Pattern::kFromRoot && member != call.root) continue;
    endpoint.note_moved(member, range.elements * size_of(call.dtype));
  }
}

Task<> exchange_in_pieces(Endpoint& endpoint, const CollectiveCall& call, ReductionKernel kernel) {
  const Position& position = endpoint.position();
  const std::size_t elements = block_elements(call);
  const std::size_t piece_elements = std::max<std::size_t>(
      kPieceBytes / (blocks_brought(call.kind, position.size) * size_of(call.dtype)), 1);
  COHORT_CHECK(piece_elements * blocks_brought(call.kind, position.size) * size_of(call.dtype) <=
               kPieceBytes);
  const std::size_t pieces = (elements + piece_elements - 1) / piece_elements;
  const std::uint64_t first = endpoint.next_pieces(pieces);
  const auto range = [&](std::size_t piece) {
    const std::size_t begin = piece * piece_elements;
    return Range{begin, std::min(piece_elements, elements - begin)};
  };
  for (std::size_t step = 0; step <= pieces; ++step) {
    if (step < pieces) {
      contribute(call, position, range(step), endpoint.cell(position.rank, first + step));
      endpoint.raise_pieces(first + step + 1);
    }
    if (step == 0) continue;
    const std::uint64_t reading = first + step - 1;
    co_await until([&endpoint, reading] { return endpoint.all_have_pieces(reading + 1); });
    const std::span<const std::byte*> cells = endpoint.pointers();
    for (std::size_t member = 0; member < cells.size(); ++member)
      cells[member] = endpoint.cell(static_cast<int>(member), reading);
    note_collected(endpoint, call, range(step - 1));
    collect(call, kernel, position, range(step - 1), cells, true);
    if (step % kPiecesBetweenYields == 0) co_await yield();
  }
}

}  // namespace cohort::node
