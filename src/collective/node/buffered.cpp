#include "buffered.h"

#include <algorithm>
#include <cstring>

#include <cohort/base/error.h>

#include "shares.h"
#include "tuning.h"

namespace cohort::node {
namespace {

constexpr std::size_t kPiecesBetweenYields = kBytesBetweenYields / kPieceBytes;

}  // namespace

SmallCall::SmallCall(Endpoint& endpoint, const CollectiveCall& call, const CallPlan& plan)
    : endpoint_(endpoint), call_(call), plan_(plan), in_line_(plan.in_line) {
  endpoint.open(plan);
  endpoint.set_reason(ChoiceReason::kSize);
  if (!in_line_) slot_ = endpoint.next_slot();
  if (endpoint.has_levels()) [[unlikely]]
    choose_way();
  endpoint.set_algorithm(in_line_ ? "line" : in_shares_ ? "shares" : "slot");
  if (plan.bytes > 0) contribute(call, endpoint.position(), {0, plan.elements}, own_buffer());
  endpoint.announce();
}

/// Among many members.
void SmallCall::choose_way() noexcept {
  if (in_line_) {
    const bool has_data = plan_.bytes > 0;
    reduced_on_the_way_ =
        has_data && (call_.kind == CollectiveKind::kAllReduce || call_.kind == CollectiveKind::kReduce);
    from_root_ = has_data && traits_of(call_.kind).pattern == CollectiveTraits::Pattern::kFromRoot;
    endpoint_.set_contents({.payload_bytes = plan_.bytes,
                            .kernel = reduced_on_the_way_ ? plan_.kernel : nullptr,
                            .elements = plan_.elements,
                            .source = from_root_ ? call_.root : -1});
  } else {
    in_shares_ = goes_in_shares(endpoint_, call_.kind, plan_.bytes);
  }
}

std::byte* SmallCall::own_buffer() const noexcept {
  return in_line_ ? endpoint_.own_payload() : endpoint_.slot(endpoint_.position().rank, slot_);
}

const std::byte* SmallCall::buffer_of(int member) const noexcept {
  if (from_root_) return endpoint_.result();
  return in_line_ ? endpoint_.payload_of(member) : endpoint_.slot(member, slot_);
}

std::span<const std::byte*> SmallCall::find_buffers() const noexcept {
  const std::span<const std::byte*> cells = endpoint_.pointers();
  for (int member = 0; const std::byte*& cell : cells) cell = buffer_of(member++);
  return cells;
}

void SmallCall::reduce_own_share() {
  reduce_share(endpoint_, plan_.kernel, size_of(call_.dtype), plan_.bytes, find_buffers(), own_buffer());
  endpoint_.raise_done();
}

void SmallCall::finish() {
  if (!endpoint_.is_plain() && !needs_contributions()) return take_result();
  if (plan_.bytes > 0)
    collect(call_, plan_.kernel, endpoint_.position(), {0, plan_.elements}, find_buffers(), !in_line_);
  endpoint_.prepare_next_line();
}

/// Among many members, what they contribute has come together already, except where each needs its own part
/// of it.
bool SmallCall::needs_contributions() const {
  if (in_shares_ || reduced_on_the_way_) return false;
  if (!in_line_ || !endpoint_.has_levels()) note_collected(endpoint_, call_, {0, plan_.elements});
  return true;
}

void SmallCall::take_result() {
  if (call_.kind == CollectiveKind::kReduce && call_.root != endpoint_.position().rank) return;
  if (in_shares_)
    collect_shares(endpoint_, plan_.bytes, find_buffers(), call_.output);
  else
    std::memcpy(call_.output, endpoint_.result(), plan_.bytes);
}

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
