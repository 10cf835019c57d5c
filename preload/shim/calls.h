// The collectives of MPI by Cohort: each function carries a call out unless it is one that the MPI has to.
// Any thread may call, as MPI allows it. `Count` is int, or MPI_Count in the functions that end in _c.
//
// What a call is must follow from what all members pass alike, or some would wait here and others in the MPI:
// the communicator, operator and root, the number of bytes, and for reductions the datatype. Other datatypes
// may differ between members, so that data with gaps is packed rather than left to the MPI.
#pragma once

#include <cstddef>

#include "mpi_abi.h"

namespace cohort::preload {

/// Who carries a call out: Cohort, or the MPI for one of these reasons.
enum class By {
  kCohort,
  kMpiForCommunicator,  ///< it has one rank, ranks on several nodes, or is an intercommunicator
  kMpiForElements,      ///< Cohort does not combine such elements by this operator, or may not
  kMpiForSizes,         ///< of blocks, that differ
  kMpiForKind,          ///< Cohort has no such collective
  kMpiForSpeed,         ///< the MPI is faster
  kMpiForArguments,     ///< they are wrong, and the MPI says so
};
inline constexpr std::size_t kWays = static_cast<std::size_t>(By::kMpiForArguments) + 1;

/// What became of a call; `status` if Cohort has carried it out. Otherwise the caller calls the MPI.
struct Outcome {
  By by = By::kCohort;
  int status = MPI_SUCCESS;
  [[nodiscard]] bool served() const noexcept { return by == By::kCohort; }
};

Outcome barrier(MPI_Comm comm);

template <class Count>
Outcome bcast(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm);

template <class Count>
Outcome reduce(const void* input, void* output, Count count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm);

template <class Count>
Outcome allreduce(const void* input, void* output, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

template <class Count>
Outcome allgather(const void* input, Count input_count, MPI_Datatype input_type, void* output,
                  Count output_count, MPI_Datatype output_type, MPI_Comm comm);

/// `Offset` is int, or MPI_Aint.
template <class Count, class Offset>
Outcome allgatherv(const void* input, Count input_count, MPI_Datatype input_type, void* output,
                   const Count* output_counts, const Offset* offsets, MPI_Datatype output_type,
                   MPI_Comm comm);

template <class Count>
Outcome gather(const void* input, Count input_count, MPI_Datatype input_type, void* output,
               Count output_count, MPI_Datatype output_type, int root, MPI_Comm comm);

template <class Count>
Outcome scatter(const void* input, Count input_count, MPI_Datatype input_type, void* output,
                Count output_count, MPI_Datatype output_type, int root, MPI_Comm comm);

/// Of blocks of one size; others are the MPI's.
template <class Count>
Outcome reduce_scatter(const void* input, void* output, const Count* counts, MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm);

template <class Count>
Outcome reduce_scatter_block(const void* input, void* output, Count count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm);

template <class Count>
Outcome alltoall(const void* input, Count input_count, MPI_Datatype input_type, void* output,
                 Count output_count, MPI_Datatype output_type, MPI_Comm comm);

/// Blocks that differ much and are large are the MPI's.
template <class Count, class Offset>
Outcome alltoallv(const void* input, const Count* input_counts, const Offset* input_offsets,
                  MPI_Datatype input_type, void* output, const Count* output_counts,
                  const Offset* output_offsets, MPI_Datatype output_type, MPI_Comm comm);

// These are always the MPI's. They are here so that members who call another collective in their place find
// out.

template <class Count, class Offset>
Outcome gatherv(const void* input, Count input_count, MPI_Datatype input_type, void* output,
                const Count* output_counts, const Offset* offsets, MPI_Datatype output_type, int root,
                MPI_Comm comm);

template <class Count, class Offset>
Outcome scatterv(const void* input, const Count* input_counts, const Offset* offsets, MPI_Datatype input_type,
                 void* output, Count output_count, MPI_Datatype output_type, int root, MPI_Comm comm);

template <class Count, class Offset>
Outcome alltoallw(const void* input, const Count* input_counts, const Offset* input_offsets,
                  const MPI_Datatype* input_types, void* output, const Count* output_counts,
                  const Offset* output_offsets, const MPI_Datatype* output_types, MPI_Comm comm);

template <class Count>
Outcome scan(const void* input, void* output, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

template <class Count>
Outcome exscan(const void* input, void* output, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

}  // namespace cohort::preload
