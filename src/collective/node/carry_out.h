// Which way a collective goes: by its size alone for what fits a slot, and otherwise by
// what all members have announced about their buffers, so that all choose alike.
#pragma once

#include <cohort/collective/steps.h>

#include "seat.h"

namespace cohort::node {

/// How data moves that does not fit a slot.
enum class Way : std::uint8_t { kPieces, kDirect, kSingleCopy };

/// As benchmarks name it, for example `single_copy`.
[[nodiscard]] std::string_view to_string(Way way) noexcept;

/// The whole collective of one member. `call` must outlive it.
Steps carry_out(Seat& seat, const CollectiveCall& call);

/// The same for who waits at once: small calls without the detour of being resumable.
void carry_out_now(Seat& seat, const CollectiveCall& call);

/// A collective that goes this way whatever its size, where the members' buffers allow it.
Steps carry_out_by(Seat& seat, const CollectiveCall& call, Way way);

}  // namespace cohort::node
