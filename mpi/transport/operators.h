// What Cohort's dtypes and reduction operators are in MPI.
#pragma once

#include <vector>

#include <cohort/collective/reduce_op.h>

#include "../calls.h"

namespace cohort::mpi {

/// A type of the same size, for moving elements.
[[nodiscard]] MPI_Datatype storage_type(DType dtype);

/// How MPI combines elements of one dtype with one operator. MEAN is a SUM, divided afterwards.
struct MpiArithmetic {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  bool as_float32 = false;  ///< 16-bit floats whose sum must be rounded once: widen them first
};

/// Keeps the operators that MPI lacks: its MIN and MAX leave open what becomes of NaN and of -0,
/// and sums of narrow integers may saturate.
class Operators {
 public:
  Operators();
  [[nodiscard]] MpiArithmetic arithmetic(DType dtype, ReduceOp op) const;

 private:
  struct Own {
    DType dtype;
    ReduceOp op;
    Op made;
  };
  std::vector<Own> own_;
};

}  // namespace cohort::mpi
