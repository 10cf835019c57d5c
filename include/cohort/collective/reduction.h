// The arithmetic of collectives: one element-wise pass over the inputs of several
// members. 16-bit floats are widened to float32 for all operands of the pass and
// rounded once; NaN propagates through every operator; integers wrap.
#pragma once

#include <cstddef>
#include <span>

#include <cohort/collective/reduce_op.h>

namespace cohort {

/// How a pass should treat the memory system; never what it computes.
struct ReductionHints {
  bool stream = false;                     ///< write all outputs past the caches
  bool stream_others = false;              ///< write all outputs but the first past the caches
  std::size_t prefetch_bytes = 0;          ///< fetch every input this far ahead
  std::size_t prefetch_outputs_bytes = 0;  ///< fetch outputs but the first, for writing, this far ahead
  int take_over = -1;  ///< index of an input that this thread writes to next: fetched for writing
};

/// outputs[j][i] = inputs[0][i] op inputs[1][i] op ..., in this order, in one pass; MEAN divides by
/// the number of inputs. An output may be one of the inputs, but must not overlap them otherwise.
/// `op` must be legal for `dtype`; `inputs` and `outputs` must not be empty.
void reduce_elements(DType dtype, ReduceOp op, std::span<const std::byte* const> inputs,
                     std::span<std::byte* const> outputs, std::size_t elements,
                     const ReductionHints& hints = {});

/// The same with one output.
inline void reduce_elements(DType dtype, ReduceOp op, std::span<const std::byte* const> inputs,
                            std::byte* output, std::size_t elements) {
  reduce_elements(dtype, op, inputs, std::span<std::byte* const>(&output, 1), elements);
}

/// Divides each floating-point element by `divisor`, rounding once: the last step of a MEAN.
void divide_elements(DType dtype, std::byte* data, std::size_t elements, std::size_t divisor);

/// Copies memory that does not overlap, past the caches if `stream`.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, bool stream = false);

}  // namespace cohort
