// Reductions among many members: each reduces its share of all contributions, and then takes the others'
// shares. A member reads twice its contribution, and not as many times as there are others. Contributions
// are combined in the order of the members, as everywhere.
#pragma once

#include <cstddef>
#include <span>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/task.h>

#include "endpoint.h"

namespace cohort::node {

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

}  // namespace cohort::node
