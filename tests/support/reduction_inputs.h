// Inputs of collectives whose reduced value is known, for any order of association or for one.
#pragma once

#include <cohort/collective/reduce_op.h>
#include <cohort/device/tensor.h>

namespace cohort::testing {

inline constexpr ReduceOp kAllOps[] = {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax,
                                       ReduceOp::kProd};

// Small integers, whose reduction is exact in any order of association, so that a wrong bit is a bug.

/// What member `rank` contributes.
[[nodiscard]] Tensor exact_inputs(int rank, DType dtype, ReduceOp op, std::size_t elements);

/// What all `members` contributions reduce to.
[[nodiscard]] Tensor exact_result(int members, DType dtype, ReduceOp op, std::size_t elements);

// Inputs whose sums and products show in which order members were combined: magnitudes
// differ widely, zeros have both signs, and there are infinities and several NaNs.

/// What member `rank` contributes.
[[nodiscard]] Tensor ordered_inputs(int rank, DType dtype, ReduceOp op, std::size_t elements);

/// All contributions combined element by element, from the first member to the last. Kept for later calls,
/// and therefore not to be written.
[[nodiscard]] Tensor ordered_result(int members, DType dtype, ReduceOp op, std::size_t elements);

}  // namespace cohort::testing
