// Reductions that Cohort has no kernel for: by the program's own operators, by those of MPI other than sums,
// products, minima and maxima, and of elements that only the MPI can combine; and scans. Where they are
// small, Cohort gathers what the members contribute, and the MPI combines it by MPI_Reduce_local: in the
// order of the ranks, so also by operators that do not commute, and on each member that gets the result, so
// that all have its bits.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "mpi_abi.h"

namespace cohort::preload {

/// What an operator of MPI is for. Those of no reduction are for one-sided communication, or none.
enum class OperatorKind { kArithmetic, kLogical, kBitwise, kPlace, kOfNoReduction, kOfProgram };

struct MpiReduction {
  MPI_Datatype type;
  MPI_Op op;
  std::size_t count;
  std::size_t data;    ///< bytes of an element's data
  std::size_t extent;  ///< bytes to the next element
  bool is_exact;       ///< all orders give the same bits

  /// What a member contributes.
  [[nodiscard]] std::size_t bytes() const noexcept { return count * extent; }
  /// Bytes from one member's elements to the next one's: operators get memory that is aligned for all types.
  [[nodiscard]] std::size_t stride() const noexcept { return (bytes() + 15) / 16 * 16; }
  [[nodiscard]] bool has_gaps() const noexcept { return data != extent; }
  /// Copies elements without what is between them, which may be anybody's.
  void copy(void* to, const void* from) const noexcept;
};

/// Nothing where MPI does not allow the operator for the datatype, where that is not a predefined one or has
/// a gap within its data, and where `count` elements are more than are faster this way.
[[nodiscard]] std::optional<MpiReduction> mpi_reduction(MPI_Datatype type, MPI_Op op, std::size_t count);

/// Up to so many bytes an MPI is faster where some only send: MPI_Reduce of Open MPI takes 0.12 to 0.24 us
/// between two ranks, and 0.22 this way.
inline constexpr std::size_t kMostBytesOfFastReduce = 128;

/// Whether the MPI is faster among so many members: there each that gets the result combines what others have
/// contributed. `some_only_send`: those need not wait in an MPI's own call, as all but the root of a
/// reduction.
[[nodiscard]] bool mpi_is_faster_by(const MpiReduction& reduction, int members, bool some_only_send) noexcept;

/// Moves what members have contributed, which lies one after the other at the beginning of `all`, to where
/// each is aligned.
void align(const MpiReduction& reduction, std::span<std::byte> all) noexcept;

/// The result of what members have contributed, aligned in `all`, which is used up: the first two
/// are combined, then the third with what they gave, and so on.
/// @throws Unavailable if the MPI fails.
void combine(const MpiReduction& reduction, std::span<std::byte> all, void* result);

}  // namespace cohort::preload
