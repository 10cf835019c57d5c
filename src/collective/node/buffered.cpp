#include "buffered.h"

#include <algorithm>

#include <cohort/base/error.h>

#include "tuning.h"

namespace cohort::node {
namespace {

constexpr std::size_t kPiecesBetweenYields = kBytesBetweenYields / kPieceBytes;

}  // namespace

SmallCall::SmallCall(Endpoint& endpoint, const CollectiveCall& call, const CallPlan& plan)
    : endpoint_(endpoint), call_(call), plan_(plan), in_line_(plan.in_line) {
  endpoint.open(plan);
  endpoint.set_algorithm(in_line_ ? "line" : "slot");
  endpoint.set_reason(ChoiceReason::kSize);
  if (!in_line_) slot_ = endpoint.next_slot();
  if (plan.bytes > 0)
    contribute(call, endpoint.position(), {0, plan.elements}, buffer_of(endpoint.position().rank));
  endpoint.announce();
}

std::byte* SmallCall::buffer_of(int member) const noexcept {
  return in_line_ ? endpoint_.payload_of(member) : endpoint_.slot(member, slot_);
}

void SmallCall::finish() {
  if (plan_.bytes > 0) {
    const std::span<const std::byte*> cells = endpoint_.pointers();
    for (int member = 0; member < endpoint_.position().size; ++member)
      cells[static_cast<std::size_t>(member)] = buffer_of(member);
    collect(call_, plan_.kernel, endpoint_.position(), {0, plan_.elements}, cells, !in_line_);
  }
  endpoint_.prepare_next_line();
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
    collect(call, kernel, position, range(step - 1), cells, true);
    if (step % kPiecesBetweenYields == 0) co_await yield();
  }
}

}  // namespace cohort::node
