#include "small_call.h"

#include <algorithm>
#include <cstring>

#include "pieces.h"
#include "shares.h"

namespace cohort::node {
namespace {

/// Whether one member reduces a call of one piece for all. Where each reads all contributions, it does so
/// while others wait for the core.
bool goes_by_one(const Endpoint& endpoint, CollectiveKind kind, std::size_t bytes) noexcept {
  const auto members = static_cast<std::size_t>(endpoint.position().size);
  return reduces_whole(kind) && endpoint.group().shares_cores() && !endpoint.has_levels() &&
         members >= kFewestForOne && members * bytes >= kLeastForOne;
}

}  // namespace

void SmallCall::choose_way() noexcept {
  if (!in_line_) {
    by_one_ = goes_by_one(endpoint_, call_.kind, plan_.bytes);
    in_shares_ = !by_one_ && goes_in_shares(endpoint_, call_.kind, plan_.bytes);
  } else if (endpoint_.has_levels()) {
    const bool has_data = plan_.bytes > 0;
    reduced_on_the_way_ = has_data && reduces_whole(call_.kind);
    from_root_ = has_data && traits_of(call_.kind).pattern == CollectiveTraits::Pattern::kFromRoot;
    endpoint_.set_contents({.payload_bytes = plan_.bytes,
                            .kernel = reduced_on_the_way_ ? plan_.kernel : nullptr,
                            .elements = plan_.elements,
                            .source = from_root_ ? call_.root : -1});
  }
}

void SmallCall::reduce_own_part() {
  if (by_one_)
    reduce_for_all();
  else
    reduce_share(endpoint_, plan_.kernel, size_of(call_.dtype), plan_.bytes, find_buffers(), own_buffer());
  endpoint_.raise_done();
}

// Who comes last runs already, while the others wait for their core: it sees the announcements first.
void SmallCall::reduce_for_all() {
  reducer_ = endpoint_.choose_reducer();
  if (reducer_ != endpoint_.position().rank) return;
  for (int member = 0; member < endpoint_.position().size; ++member)
    endpoint_.note_moved(member, plan_.bytes);
  std::byte* const result = own_buffer();
  plan_.kernel(find_buffers(), {&result, 1}, plan_.elements, {});
}

void SmallCall::finish_among_many() {
  if (!needs_contributions()) return take_result();
  if (!from_root_) return collect_result();
  const std::span<const std::byte*> buffers = endpoint_.pointers();
  std::ranges::fill(buffers, endpoint_.result());
  collect(call_, plan_.kernel, endpoint_.position(), {0, plan_.elements}, buffers, false);
  endpoint_.prepare_next_line();
}

/// Among many members, what they contribute has come together already, except where each needs its own part
/// of it.
bool SmallCall::needs_contributions() const {
  if (in_two_steps() || reduced_on_the_way_) return false;
  if (!in_line_ || !endpoint_.has_levels()) note_collected(endpoint_, call_, {0, plan_.elements});
  return true;
}

void SmallCall::take_result() {
  if (call_.kind == CollectiveKind::kReduce && call_.root != endpoint_.position().rank) return;
  if (in_shares_) return collect_shares(endpoint_, plan_.bytes, find_buffers(), call_.output);
  if (by_one_) endpoint_.note_moved(reducer_, plan_.bytes);
  std::memcpy(call_.output, by_one_ ? endpoint_.slot(reducer_, slot_) : endpoint_.result(), plan_.bytes);
}

}  // namespace cohort::node
