// The network's own kernels; matrix products are cuBLAS's. Each kernel is a struct that is passed to the GPU
// as its argument; one thread does one of its items. Matrices are row-major.
#pragma once

#include <cmath>
#include <cstdint>

#include <cuda_runtime_api.h>

#include <cohort/device/device.h>

namespace gpu_digits {

/// x = tanh(x + bias), with one bias for each column.
struct AddBiasAndTanh {
  float* x;
  const float* bias;
  int rows;
  int columns;

  [[nodiscard]] __host__ __device__ int items() const { return rows * columns; }
  __host__ __device__ void run(int item) const { x[item] = tanhf(x[item] + bias[item % columns]); }
};

/// gradient *= the derivative of tanh, which is 1 - tanh^2.
struct MultiplyByTanhDerivative {
  float* gradient;
  const float* tanh;
  int elements;

  [[nodiscard]] __host__ __device__ int items() const { return elements; }
  __host__ __device__ void run(int item) const { gradient[item] *= 1 - tanh[item] * tanh[item]; }
};

/// Cross-entropy of the softmax of logits + bias: the loss of each row, whether its largest logit is the
/// label's, and the gradient by the logits, divided by `global_batch`, which overwrites the logits.
struct SoftmaxCrossEntropy {
  float* logits;  ///< in; the gradient out
  const float* bias;
  const std::int32_t* labels;
  float* scores;  ///< [rows, 2]: loss, and 1 for right
  int rows;
  int classes;
  float global_batch;

  [[nodiscard]] __host__ __device__ int items() const { return rows; }
  __host__ __device__ void run(int row) const {
    float* const own = logits + row * classes;
    const int label = labels[row];
    int best = 0;
    for (int i = 0; i < classes; ++i) {
      own[i] += bias[i];
      if (own[i] > own[best]) best = i;
    }
    const float largest = own[best];
    const float wanted = own[label] - largest;
    float sum = 0;
    for (int i = 0; i < classes; ++i) sum += own[i] = expf(own[i] - largest);
    for (int i = 0; i < classes; ++i) own[i] = (own[i] / sum - (i == label ? 1.0F : 0.0F)) / global_batch;
    scores[2 * row] = logf(sum) - wanted;
    scores[2 * row + 1] = best == label ? 1.0F : 0.0F;
  }
};

/// sums[j] = the sum of column j.
struct SumColumns {
  const float* matrix;
  float* sums;
  int rows;
  int columns;

  [[nodiscard]] __host__ __device__ int items() const { return columns; }
  __host__ __device__ void run(int column) const {
    float sum = 0;
    for (int row = 0; row < rows; ++row) sum += matrix[row * columns + column];
    sums[column] = sum;
  }
};

/// Starts the kernel of `body`, one of the four above, on Cohort's compute stream of `gpu`, in order with
/// Cohort's own work on the same tensors.
template <class Body>
void launch(cohort::Device gpu, const Body& body);

}  // namespace gpu_digits
