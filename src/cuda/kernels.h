// The kernel of each body, which CUDA launches.
#pragma once

#include "kernel_bodies.h"

namespace cohort::cuda {

template <class Body>
[[nodiscard]] const void* kernel_of();

#define COHORT_CUDA_DECLARE(Body) \
  template <>                     \
  const void* kernel_of<Body>();
COHORT_CUDA_BODIES(COHORT_CUDA_DECLARE)
#undef COHORT_CUDA_DECLARE

}  // namespace cohort::cuda
