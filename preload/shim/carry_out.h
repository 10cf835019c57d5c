// How one collective of MPI is carried out by Cohort, or left to the MPI: what the functions of calls.h
// share.
#pragma once

#include <cstddef>
#include <exception>

#include <cohort/collective/collective_call.h>

#include "calls.h"
#include "communicators.h"
#include "mpi_calls.h"

namespace cohort::preload {

inline constexpr Outcome kDone{};
inline constexpr Outcome kForCommunicator{.by = By::kMpiForCommunicator};
inline constexpr Outcome kForArguments{.by = By::kMpiForArguments};

/// Up to so many bytes of each rank, an MPI whose ranks do not wait where they only send is faster than one
/// of Cohort's calls in which all wait for all: 0.10 us against 0.20 between two ranks.
inline constexpr std::size_t kMostBytesSentAhead = 256;

/// What the members share of a communicator that Cohort serves; null: it does not. `depends_on_order(group)`:
/// of the result of this call, the bits do.
template <class DependsOnOrder>
ServedCommunicator* served_if(MPI_Comm comm, const DependsOnOrder& depends_on_order) {
  ServedCommunicator* const found = Communicators::of_this_process().find(comm, depends_on_order);
  return found != nullptr && found->communicator != nullptr ? found : nullptr;
}

inline ServedCommunicator* served(MPI_Comm comm) {
  return served_if(comm, [](const ServedCommunicator&) { return false; });
}

/// The call of `function` is the MPI's, on all members. Those who make another one in its place find out.
inline Outcome left_to_mpi(const ServedCommunicator& group, const char* function, By why) {
  note_call_of_mpi(*group.communicator, function);
  return {.by = why};
}

/// The same for one that always is.
inline Outcome always_left(const char* function, MPI_Comm comm) {
  const ServedCommunicator* const group = served(comm);
  return group == nullptr ? kForCommunicator : left_to_mpi(*group, function, By::kMpiForKind);
}

inline const std::byte* bytes_at(const void* data) { return static_cast<const std::byte*>(data); }
inline std::byte* bytes_at(void* data) { return static_cast<std::byte*>(data); }

/// Makes the call by `body`. Its error ends it as the MPI's own do.
template <class Body>
Outcome carry_out_as(const char* function, MPI_Comm comm, const Body& body) {
  try {
    body();
    return kDone;
  } catch (const std::exception& error) {
    return {.status = fail(comm, function, error)};
  }
}

inline Outcome carry_out_as(const char* function, const ServedCommunicator& served, MPI_Comm comm,
                            const CollectiveCall& call) {
  return carry_out_as(function, comm, [&] { carry_out(*served.communicator, call); });
}

/// Whether MPI_IN_PLACE stands where it is not legal.
inline bool is_misplaced(const void* buffer, bool is_legal = false) {
  return buffer == MPI_IN_PLACE && !is_legal;
}

/// Whether the MPI refuses buffers that are the same and must not be. MPICH and its kin do; Open MPI goes on.
inline bool is_refused(const void* input, const void* output) {
  static const bool refuses = mpi::is_mpich_or_kin();
  return refuses && input == output && input != nullptr;
}

/// Whether that holds for a rooted collective, to which each rank contributes so many `bytes`, or the root
/// `from_root` bytes for all.
inline bool mpi_is_faster(const ServedCommunicator& served, std::size_t bytes, std::size_t from_root) {
  return bytes <= kMostBytesSentAhead && from_root > served.eager_bytes;
}

inline bool is_root_of(const ServedCommunicator& served, int root) { return root >= 0 && root < served.size; }

}  // namespace cohort::preload
