// Long collectives through cells, piece by piece: for buffers that no other member can access, and where that
// is faster than to work on them where they are. Among few members each piece is read by all; among many they
// reduce it in shares, or pass it on from member to member.
#pragma once

#include <cstddef>
#include <span>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/task.h>

#include "endpoint.h"

namespace cohort::node {

/// For the counter of lines: what `collect` reads of others.
void note_collected(const Endpoint& endpoint, const CollectiveCall& call, const Range& range);

/// A long call in pieces. Cost per member and piece: one copy in, one pass over all members' pieces.
/// Writing runs one piece ahead of reading, so that both ends of the crossing work at once.
Task<> exchange_in_pieces(Endpoint& endpoint, const CollectiveCall& call, ReductionKernel kernel);

// ---- in shares

// Reductions among many members: each reduces its share of all contributions, and then takes the others'
// shares. A member reads twice its contribution, and not as many times as there are others. Contributions
// are combined in the order of the members, as everywhere.

/// Whether the call combines whole contributions, so that all that reduce it do the same work.
[[nodiscard]] constexpr bool reduces_whole(CollectiveKind kind) noexcept {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduce;
}

/// Whether a member would otherwise read so much that meeting once more costs less: for contributions of
/// `bytes`.
[[nodiscard]] bool goes_in_shares(const Endpoint& endpoint, CollectiveKind kind, std::size_t bytes) noexcept;

/// Reduces this member's share of the contributions of `bytes` in `cells`, by rank, into its place in this
/// member's own cell, which the others then read. Overwrites the pointers.
void reduce_share(const Endpoint& endpoint, ReductionKernel kernel, std::size_t element_bytes,
                  std::size_t bytes, std::span<const std::byte*> cells, std::byte* own_cell);

/// Once all have done so: copies all shares to `to`.
void collect_shares(const Endpoint& endpoint, std::size_t bytes, std::span<const std::byte* const> cells,
                    std::byte* to);

/// A long call in larger pieces: all meet when one of each lies in the cells, and, where they reduce it in
/// shares, once more. Where announcements go along a tree, and for reductions in shares.
Task<> exchange_in_steps(Endpoint& endpoint, const CollectiveCall& call, ReductionKernel kernel);

// ---- along the members

// An all-reduce of memory that only its owner reaches, on a node whose members share cores. Each piece of the
// sum passes through the members in the order of their ranks: one takes it from the member before it, adds
// its own, and passes it on. All take the result from the last one.
//
// On shared cores a member pays for each time that it waits, with a turn of all others on its core. It waits
// once for the member before it and once for the result if its turn comes when all of that is there, and not
// twice for all others in each step.

/// Whether a call of `bytes` on each member that would go in shares, or by the kernel's copies, goes this
/// way: there are enough pieces for the number of members, they fit the members' cells, and a sum may be
/// rounded after each member.
[[nodiscard]] bool goes_along_members(const Endpoint& endpoint, const CollectiveCall& call,
                                      std::size_t bytes) noexcept;

/// After all have announced the call.
Task<> reduce_along_members(Endpoint& endpoint, const CollectiveCall& call);

}  // namespace cohort::node
