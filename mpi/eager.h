// Small collectives finish in the control phase: each member's data travels with its
// signature to member 0, which computes the result and sends it with its consent. That
// is one round trip instead of two phases.
//
// Cost  2 (alpha + n beta) (p-1) at member 0: the choice for few bytes only.
#pragma once

#include <cstddef>
#include <span>

#include <cohort/collective/collective_call.h>

namespace cohort::mpi {

/// Most bytes that a member contributes or gets in this way; with the signature it stays below
/// the size from which on MPI libraries wait for the receiver.
inline constexpr std::size_t kEagerBytes = 2048;

/// The same on all members whose calls agree.
[[nodiscard]] bool is_eager(const CollectiveCall& call, int members);

/// What this member sends to member 0.
[[nodiscard]] std::span<const std::byte> eager_contribution(const CollectiveCall& call, int rank);

/// What member 0 sends to all; `contributions` by member, `result` has room for kEagerBytes.
[[nodiscard]] std::span<const std::byte> eager_result(
    const CollectiveCall& call, std::span<const std::span<const std::byte>> contributions,
    std::span<std::byte> result);

void take_eager_result(const CollectiveCall& call, int rank, std::span<const std::byte> result);

}  // namespace cohort::mpi
