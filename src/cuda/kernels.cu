// The kernels: every thread runs its share of the body. Their names are part of no interface, but the
// stand-in of the tests finds them by name.
#include "kernels.h"

#define COHORT_CUDA_KERNEL(Body)                                                   \
  extern "C" __global__ void cohort_kernel_##Body(const cohort::cuda::Body body) { \
    body.run(static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x,      \
             static_cast<std::size_t>(gridDim.x) * blockDim.x);                    \
  }                                                                                \
  template <>                                                                      \
  const void* cohort::cuda::kernel_of<cohort::cuda::Body>() {                      \
    return reinterpret_cast<const void*>(&cohort_kernel_##Body);                   \
  }

COHORT_CUDA_BODIES(COHORT_CUDA_KERNEL)
