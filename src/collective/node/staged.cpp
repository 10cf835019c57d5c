#include "staged.h"

#include <algorithm>

#include <cohort/base/error.h>

#include "tuning.h"

namespace cohort::node {
namespace {

constexpr std::size_t kPiecesBetweenRests = kBytesBetweenRests / kPieceBytes;

}  // namespace

SlotCall::SlotCall(Seat& seat, const CollectiveCall& call, const CallPlan& plan)
    : seat_(seat), call_(call), plan_(plan), in_line_(plan.in_line) {
  seat_.open(plan);
  seat_.algorithm = in_line_ ? "line" : "slot";
  seat_.reason = ChoiceReason::kSize;
  if (!in_line_) slot_ = seat_.next_slot();
  if (plan.bytes > 0) contribute(call_, seat_.place(), {0, plan.elements}, cell_of(seat_.place().rank));
  seat_.announce();
}

std::byte* SlotCall::cell_of(int member) const noexcept {
  return in_line_ ? seat_.payload_of(member) : seat_.slot(member, slot_);
}

void SlotCall::finish() {
  if (plan_.bytes > 0) {
    const std::span<const std::byte*> cells = seat_.pointers();
    for (int member = 0; member < seat_.place().size; ++member)
      cells[static_cast<std::size_t>(member)] = cell_of(member);
    collect(call_, plan_.kernel, seat_.place(), {0, plan_.elements}, cells, !in_line_);
  }
  seat_.prepare_next_line();
}

Steps exchange_in_pieces(Seat& seat, const CollectiveCall& call, ReductionKernel kernel) {
  const Place& place = seat.place();
  const std::size_t elements = block_elements(call);
  const std::size_t piece_elements =
      std::max<std::size_t>(kPieceBytes / (blocks_brought(call.kind, place.size) * size_of(call.dtype)), 1);
  COHORT_CHECK(piece_elements * blocks_brought(call.kind, place.size) * size_of(call.dtype) <= kPieceBytes);
  const std::size_t pieces = (elements + piece_elements - 1) / piece_elements;
  const std::uint64_t first = seat.next_pieces(pieces);
  const auto range = [&](std::size_t piece) {
    const std::size_t begin = piece * piece_elements;
    return Range{begin, std::min(piece_elements, elements - begin)};
  };
  for (std::size_t step = 0; step <= pieces; ++step) {
    if (step < pieces) {
      contribute(call, place, range(step), seat.cell(place.rank, first + step));
      seat.raise_pieces(first + step + 1);
    }
    if (step == 0) continue;
    const std::uint64_t reading = first + step - 1;
    co_await until([&seat, reading] { return seat.all_have_pieces(reading + 1); });
    const std::span<const std::byte*> cells = seat.pointers();
    for (std::size_t member = 0; member < cells.size(); ++member)
      cells[member] = seat.cell(static_cast<int>(member), reading);
    collect(call, kernel, place, range(step - 1), cells, true);
    if (step % kPiecesBetweenRests == 0) co_await rest();
  }
}

}  // namespace cohort::node
