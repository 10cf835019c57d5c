// Inputs of collectives whose reduced value is known exactly, for any order of association: small integers,
// so that a wrong bit is a bug.
#pragma once

#include <cohort/collective/reduce_op.h>
#include <cohort/device/tensor.h>

namespace cohort::testing {

/// What member `rank` contributes.
[[nodiscard]] Tensor exact_inputs(int rank, DType dtype, ReduceOp op, std::size_t elements);

/// What all `members` contributions reduce to.
[[nodiscard]] Tensor exact_result(int members, DType dtype, ReduceOp op, std::size_t elements);

}  // namespace cohort::testing
