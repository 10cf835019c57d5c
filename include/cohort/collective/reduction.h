// The arithmetic of collectives: one element-wise pass over the inputs of several members, whose result goes
// to one or several outputs. 16-bit floats are widened to float32 for all operands of the pass and rounded
// once; integers wrap; MIN and MAX order -0 before +0. A NaN stays a NaN through every operator; the result
// is the quiet NaN without sign and payload.
//
// The kernels are vectorised for several instruction sets; the best one that the processor
// has is chosen at run time, and all of them give the same bits. Any thread may call them at
// any time; buffers need no alignment beyond that of their elements.
#pragma once

#include <cstddef>
#include <span>

#include <cohort/collective/reduce_op.h>

namespace cohort {

/// How a pass treats the caches. Never changes the result; ignored below 1 KiB.
struct ReductionHints {
  /// Writes every output past the caches (for results larger than the last private level), and
  /// has them visible to other cores before it returns.
  bool stream = false;
  /// The same for every output but the first: the others belong to other cores.
  bool stream_others = false;
  /// The input whose cache lines are prefetched for writing, about 2 KiB ahead, because this thread
  /// writes there next; -1: none.
  int take_over = -1;
  /// How many bytes ahead every output but the first is prefetched for writing; 0: not at all.
  std::size_t prefetch_outputs_bytes = 0;
};

/// output[i] = inputs[0][i] op inputs[1][i] op ..., from left to right, for each of `outputs`;
/// MEAN divides by the number of inputs. An output may be one of the inputs; outputs must not
/// overlap inputs or one another otherwise. Neither list may be empty.
using ReductionKernel = void (*)(std::span<const std::byte* const> inputs,
                                 std::span<std::byte* const> outputs, std::size_t elements,
                                 const ReductionHints& hints);

/// The kernel for this processor, good for the life of the process.
/// @throws Internal for an operator and dtype that `require_legal` refuses.
[[nodiscard]] ReductionKernel reduction_kernel(DType dtype, ReduceOp op);

/// Looks the kernel up and calls it.
void reduce_elements(DType dtype, ReduceOp op, std::span<const std::byte* const> inputs,
                     std::span<std::byte* const> outputs, std::size_t elements,
                     const ReductionHints& hints = {});

/// The same with one output.
void reduce_elements(DType dtype, ReduceOp op, std::span<const std::byte* const> inputs, std::byte* output,
                     std::size_t elements);

/// Divides each floating-point element by `divisor`, rounding once: the last step of a MEAN.
void divide_elements(DType dtype, std::byte* data, std::size_t elements, std::size_t divisor);

}  // namespace cohort
