#include "staged.h"

#include <algorithm>

namespace cohort::node {

SlotCall::SlotCall(Seat& seat, const CollectiveCall& call, const CallPlan& plan)
    : seat_(seat), call_(call), kernel_(plan.kernel), in_line_(plan.bytes <= kPayloadBytes) {
  seat_.open(plan);
  seat_.algorithm = in_line_ ? "line" : "slot";
  if (!in_line_) slot_ = seat_.next_slot();
  if (plan.bytes > 0) {
    std::byte* to = in_line_ ? seat_.payload() : seat_.slot(seat_.place().rank, slot_);
    contribute(call_, seat_.place(), {0, block_elements(call_)}, to);
  }
  seat_.announce();
}

void SlotCall::finish() {
  const Range all{0, block_elements(call_)};
  if (all.elements > 0) {
    const std::span<const std::byte*> cells = seat_.pointers();
    for (std::size_t member = 0; member < cells.size(); ++member) {
      const int rank = static_cast<int>(member);
      cells[member] = in_line_ ? seat_.payload_of(rank) : seat_.slot(rank, slot_);
    }
    collect(call_, kernel_, seat_.place(), all, cells, !in_line_);
  }
  seat_.prepare_next_line();
}

Steps exchange_in_pieces(Seat& seat, const CollectiveCall& call, ReductionKernel kernel) {
  const Place& place = seat.place();
  const std::size_t elements = block_elements(call);
  const std::size_t piece_elements =
      std::max<std::size_t>(kPieceBytes / (blocks_brought(call.kind, place.size) * size_of(call.dtype)), 1);
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
  }
}

}  // namespace cohort::node
