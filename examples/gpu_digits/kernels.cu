#include "kernels.h"

#include <stdexcept>
#include <string>

#include <cohort/cuda/current_device.h>
#include <cohort/cuda/stream.h>

namespace gpu_digits {

template <class Body>
__global__ void for_each_item(Body body) {
  const int step = static_cast<int>(gridDim.x * blockDim.x);
  for (int item = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); item < body.items(); item += step)
    body.run(item);
}

template <class Body>
void launch(cohort::Device gpu, const Body& body) {
  constexpr int kThreads = 128;
  if (body.items() == 0) return;
  const cohort::cuda::CurrentDevice current(gpu);
  const int blocks = (body.items() + kThreads - 1) / kThreads;
  for_each_item<<<blocks, kThreads, 0, cohort::cuda::compute_stream(gpu).handle()>>>(body);
  if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess)
    throw std::runtime_error(std::string("a kernel was not launched: ") + cudaGetErrorString(status));
}

template void launch(cohort::Device, const AddBiasAndTanh&);
template void launch(cohort::Device, const MultiplyByTanhDerivative&);
template void launch(cohort::Device, const SoftmaxCrossEntropy&);
template void launch(cohort::Device, const SumColumns&);

}  // namespace gpu_digits
