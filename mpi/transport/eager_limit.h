// Up to which length MPI delivers a message without waiting for its receiver to call MPI.
// Longer ones wait for a member that may be computing, so long collectives go in messages
// below it.
#pragma once

#include <cstddef>

namespace cohort::mpi {

/// Bytes of the longest message of a long collective, from what the library says of its limit over TCP,
/// which is the lowest of all networks. Where it says nothing, 56 KiB, below the usual limit of 64 KiB.
[[nodiscard]] std::size_t longest_eager_message();

/// The same from that limit: the library's headers count in it.
[[nodiscard]] std::size_t longest_message_below(std::size_t limit) noexcept;

}  // namespace cohort::mpi
