// The functions of cuBLAS that examples/gpu_digits calls, on the streams of the stand-in for GPUs: matrices
// lie column by column, and scalars are the host's, read when a function is called.
#include <cstddef>
#include <memory>

#include <cublas_v2.h>

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace {

/// c = alpha op(a) op(b) + beta c, where op(a) is m x k and op(b) k x n.
struct Product {
  bool a_transposed;
  bool b_transposed;
  int m;
  int n;
  int k;
  float alpha;
  const float* a;
  int a_stride;
  const float* b;
  int b_stride;
  float beta;
  float* c;
  int c_stride;

  static const float& at(const float* matrix, int stride, bool transposed, int row, int column) {
    if (transposed) return at(matrix, stride, false, column, row);
    return matrix[static_cast<std::ptrdiff_t>(column) * stride + row];
  }

  void run() const {
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < m; ++row) {
        double sum = 0;
        for (int i = 0; i < k; ++i)
          sum += double{at(a, a_stride, a_transposed, row, i)} * at(b, b_stride, b_transposed, i, column);
        float& result = c[static_cast<std::ptrdiff_t>(column) * c_stride + row];
        const double old = beta == 0 ? 0 : double{beta} * result;
        result = static_cast<float>(alpha * sum + old);
      }
    }
  }
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t a_operation,
                              cublasOperation_t b_operation, int m, int n, int k, const float* alpha,
                              const float* a, int a_stride, const float* b, int b_stride, const float* beta,
                              float* c, int c_stride) {
  const bool a_transposed = a_operation == CUBLAS_OP_T;
  const bool b_transposed = b_operation == CUBLAS_OP_T;
  const bool strides_fit =
      a_stride >= (a_transposed ? k : m) && b_stride >= (b_transposed ? n : k) && c_stride >= m;
  if (m <= 0 || n <= 0 || k <= 0 || !strides_fit) return CUBLAS_STATUS_INVALID_VALUE;
  auto product = std::make_unique<Product>(
      Product{a_transposed, b_transposed, m, n, k, *alpha, a, a_stride, b, b_stride, *beta, c, c_stride});
  const auto run = [](void* argument) { std::unique_ptr<Product>(static_cast<Product*>(argument))->run(); };
  if (cudaLaunchHostFunc(handle->stream, run, product.get()) != cudaSuccess)
    return CUBLAS_STATUS_EXECUTION_FAILED;
  static_cast<void>(product.release());
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
