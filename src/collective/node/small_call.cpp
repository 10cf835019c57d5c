#include "small_call.h"

#include <algorithm>
#include <cstring>

#include "pieces.h"

namespace cohort::node {
namespace {

/// Whether one member reduces a call of one piece for all. Where each reads all contributions, it does so
/// while others wait for the core.
bool goes_by_one(const Endpoint& endpoint, CollectiveKind kind, std::size_t bytes) noexcept {
  const auto members = static_cast<std::size_t>(endpoint.position().size);
  return reduces_whole(kind) && endpoint.group().shares_cores() && !endpoint.has_levels() &&
         members >= kFewestForOne && members * bytes >= kLeastForOne;
}

// Who comes last runs already, while the others wait for their core: it sees the announcements first.
void reduce_for_all(const SmallCall& small) {
  Endpoint& endpoint = small.endpoint;
  if (endpoint.choose_reducer() != endpoint.position().rank) return;
  for (int member = 0; member < endpoint.position().size; ++member)
    endpoint.note_moved(member, small.plan.bytes);
  std::byte* const result = small.own_buffer();
  small.plan.kernel(small.buffers(), {&result, 1}, small.plan.elements, {});
}

void collect_roots(const SmallCall& small) {
  Endpoint& endpoint = small.endpoint;
  const std::span<const std::byte*> buffers = endpoint.pointers();
  std::ranges::fill(buffers, endpoint.result());
  collect(small.call, small.plan.kernel, endpoint.position(), {0, small.plan.elements}, buffers, false);
  endpoint.prepare_next_line();
}

void take_result(const SmallCall& small, const std::byte* result) {
  if (small.call.kind == CollectiveKind::kReduce && small.call.root != small.endpoint.position().rank) return;
  std::memcpy(small.call.output, result, small.plan.bytes);
}

}  // namespace

SmallWay choose_small_way(Endpoint& endpoint, const CollectiveCall& call, const CallPlan& plan) noexcept {
  const CollectiveKind kind = call.kind;
  if (!plan.in_line) {
    if (goes_by_one(endpoint, kind, plan.bytes)) return SmallWay::kByOne;
    return goes_in_shares(endpoint, kind, plan.bytes) ? SmallWay::kShares : SmallWay::kSlot;
  }
  if (!endpoint.has_levels()) return SmallWay::kLine;
  const bool has_data = plan.bytes > 0;
  const bool is_reduced = has_data && reduces_whole(kind);
  const bool is_roots = has_data && traits_of(kind).pattern == CollectiveTraits::Pattern::kFromRoot;
  endpoint.set_contents({.payload_bytes = plan.bytes,
                         .kernel = is_reduced ? plan.kernel : nullptr,
                         .elements = plan.elements,
                         .source = is_roots ? call.root : -1});
  return is_reduced ? SmallWay::kReducedLine : is_roots ? SmallWay::kRootsLine : SmallWay::kLine;
}

void reduce_own_part(const SmallCall& small) {
  if (small.way == SmallWay::kByOne)
    reduce_for_all(small);
  else
    reduce_share(small.endpoint, small.plan.kernel, size_of(small.call.dtype), small.plan.bytes,
                 small.buffers(), small.own_buffer());
  small.endpoint.raise_done();
}

bool is_reduced(const SmallCall& small) noexcept {
  Endpoint& endpoint = small.endpoint;
  return small.way == SmallWay::kByOne ? endpoint.is_done(endpoint.choose_reducer())
                                       : endpoint.all_are_done();
}

SmallCall begin_eager(Endpoint& endpoint, const CollectiveCall& call, const CallPlan& plan) {
  endpoint.open(plan);
  endpoint.remember(plan);
  SmallCall small{.endpoint = endpoint, .call = call, .plan = plan, .way = SmallWay::kEager};
  announce_small(small);
  return small;
}

/// Among many members, what they contribute has come together already, except where each needs its own part
/// of it.
void finish_among_many(const SmallCall& small) {
  Endpoint& endpoint = small.endpoint;
  switch (small.way) {
    case SmallWay::kLine:
    case SmallWay::kSlot:
    case SmallWay::kEager:
      if (!small.in_line() || !endpoint.has_levels())
        note_collected(endpoint, small.call, {0, small.plan.elements});
      return collect_result(small);
    case SmallWay::kRootsLine: return collect_roots(small);
    case SmallWay::kReducedLine: return take_result(small, endpoint.result());
    case SmallWay::kShares:
      if (small.call.kind == CollectiveKind::kReduce && small.call.root != endpoint.position().rank) return;
      return collect_shares(endpoint, small.plan.bytes, small.buffers(), small.call.output);
    case SmallWay::kByOne: {
      const int reducer = endpoint.choose_reducer();
      if (small.call.kind != CollectiveKind::kReduce || small.call.root == endpoint.position().rank)
        endpoint.note_moved(reducer, small.plan.bytes);
      return take_result(small, small.buffer_of(reducer));
    }
  }
}

}  // namespace cohort::node
