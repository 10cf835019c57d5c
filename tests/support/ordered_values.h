// Inputs whose sums and products show in which order members were combined: magnitudes
// differ widely, zeros have both signs, and there are infinities and several NaNs.
#pragma once

#include <cohort/collective/reduce_op.h>
#include <cohort/device/tensor.h>

namespace cohort::testing {

/// What member `rank` contributes.
[[nodiscard]] Tensor ordered_inputs(int rank, DType dtype, ReduceOp op, std::size_t elements);

/// All contributions combined element by element, from the first member to the last. Kept for later calls,
/// and therefore not to be written.
[[nodiscard]] Tensor ordered_result(int members, DType dtype, ReduceOp op, std::size_t elements);

}  // namespace cohort::testing
