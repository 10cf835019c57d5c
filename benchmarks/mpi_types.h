// What MPI calls Cohort's dtypes and operators, as far as it has them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <mpi.h>

#include <cohort/collective/reduce_op.h>
#include <cohort/device/dtype.h>

namespace cohort::bench {

struct MpiReduction {
  MPI_Datatype type;
  MPI_Op op;
};

/// A type of as many bytes, to move elements that MPI need not understand.
[[nodiscard]] MPI_Datatype mpi_type_to_move(DType dtype);

/// Nothing when MPI lacks the type or the operator.
[[nodiscard]] std::optional<MpiReduction> mpi_reduction(DType dtype, ReduceOp op);

/// Empty when MPI can do it; otherwise what is missing, for example `MPI has no type for float16`.
[[nodiscard]] std::string why_mpi_cannot_reduce(DType dtype, ReduceOp op);

/// Empty when MPI can count so many elements; otherwise why not.
[[nodiscard]] std::string why_mpi_cannot_count(std::size_t elements);

}  // namespace cohort::bench
