// The vectorised kernels behind reduction.h, by dtype and operator, for the best instruction
// set of this processor.
#pragma once

#include <cstddef>

#include <cohort/collective/reduction.h>

namespace cohort {

/// Null where the operator is not legal for the dtype.
ReductionKernel best_reduction(DType dtype, ReduceOp op);

using DivisionKernel = void (*)(std::byte* data, std::size_t elements, std::size_t divisor);

/// Null for integers and bool.
DivisionKernel best_division(DType dtype);

}  // namespace cohort
