// The arithmetic of collectives: one element-wise pass over the inputs of several
// members. 16-bit floats are widened to float32 for all operands of the pass and
// rounded once; NaN propagates through every operator; integers wrap.
#pragma once

#include <cstddef>
#include <span>

#include <cohort/collective/reduce_op.h>

namespace cohort {

/// output[i] = inputs[0][i] op inputs[1][i] op ..., in this order; MEAN divides by the number
/// of inputs. `output` may be one of the inputs, but must not overlap them otherwise.
/// `op` must be legal for `dtype`, and `inputs` not empty.
void reduce_elements(DType dtype, ReduceOp op, std::span<const std::byte* const> inputs, std::byte* output,
                     std::size_t elements);

/// Divides each floating-point element by `divisor`, rounding once: the last step of a MEAN.
void divide_elements(DType dtype, std::byte* data, std::size_t elements, std::size_t divisor);

}  // namespace cohort
