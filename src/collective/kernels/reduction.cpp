#include <cohort/collective/reduction.h>

#include <cohort/base/error.h>

#include "reduction_kernels.h"

namespace cohort {

ReductionKernel reduction_kernel(DType dtype, ReduceOp op) {
  const ReductionKernel kernel = best_reduction(dtype, op);
  if (kernel == nullptr)
    throw Internal("{} of {} passed the check of legal operators", to_string(op), to_string(dtype));
  return kernel;
}

void reduce_elements(DType dtype, ReduceOp op, std::span<const std::byte* const> inputs,
                     std::span<std::byte* const> outputs, std::size_t elements, const ReductionHints& hints) {
  reduction_kernel(dtype, op)(inputs, outputs, elements, hints);
}

void reduce_elements(DType dtype, ReduceOp op, std::span<const std::byte* const> inputs, std::byte* output,
                     std::size_t elements) {
  reduce_elements(dtype, op, inputs, std::span(&output, 1), elements);
}

void divide_elements(DType dtype, std::byte* data, std::size_t elements, std::size_t divisor) {
  const DivisionKernel kernel = best_division(dtype);
  if (kernel == nullptr) throw Internal("{} is divided only in the MEAN of its sum", to_string(dtype));
  kernel(data, elements, divisor);
}

}  // namespace cohort
