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

/// Nothing when MPI lacks the type or the operator.
[[nodiscard]] std::optional<MpiReduction> mpi_reduction(DType dtype, ReduceOp op);

/// Empty when MPI can do it; otherwise what is missing, for example `MPI has no type for float16`.
[[nodiscard]] std::string why_mpi_cannot_reduce(DType dtype, ReduceOp op, std::size_t elements);

}  // namespace cohort::bench
