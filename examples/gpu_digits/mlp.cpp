#include "mlp.h"

#include <utility>

#include <cublas_v2.h>

#include <cohort/base/error.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/tensor.h>

#include "../digits/initial_weights.h"
#include "kernels.h"

namespace gpu_digits {

using cohort::Device;
using cohort::DType;
using cohort::Tensor;

namespace {

void require(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw cohort::Internal("{}: {}", call, cublasGetStatusString(status));
}

float* floats(const Tensor& tensor) { return reinterpret_cast<float*>(tensor.data()); }
int rows_of(const Tensor& matrix) { return static_cast<int>(matrix.shape()[0]); }
int columns_of(const Tensor& matrix) { return static_cast<int>(matrix.shape()[1]); }

/// A matrix in a product, as it is or transposed.
struct Factor {
  const Tensor& matrix;
  bool is_transposed = false;

  [[nodiscard]] int rows() const { return is_transposed ? columns_of(matrix) : rows_of(matrix); }
  [[nodiscard]] int columns() const { return is_transposed ? rows_of(matrix) : columns_of(matrix); }
  [[nodiscard]] cublasOperation_t operation() const { return is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }
};
Factor transposed(const Tensor& matrix) { return {matrix, true}; }

Tensor matrix_on(Device gpu, std::int64_t rows, std::int64_t columns) {
  return Tensor::uninitialized({rows, columns}, DType::kFloat32, gpu);
}

Tensor sum_of_columns(const Tensor& matrix) {
  Tensor sums = Tensor::uninitialized({matrix.shape()[1]}, DType::kFloat32, matrix.device());
  launch(matrix.device(), SumColumns{floats(matrix), floats(sums), rows_of(matrix), columns_of(matrix)});
  return sums;
}

}  // namespace

/// cuBLAS on one GPU, for one thread at a time.
class Cublas {
 public:
  explicit Cublas(Device gpu) : gpu_(gpu) {
    const cohort::cuda::CurrentDevice current(gpu);
    require(cublasCreate(&handle_), "cublasCreate");
    require(cublasSetStream(handle_, cohort::cuda::compute_stream(gpu).handle()), "cublasSetStream");
  }
  ~Cublas() { static_cast<void>(cublasDestroy(handle_)); }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  /// The product a b. Tensors are row-major and cuBLAS is column-major, so cuBLAS sees each matrix
  /// transposed, and is asked for (a b)^T = b^T a^T.
  [[nodiscard]] Tensor product(const Factor& a, const Factor& b) const {
    const cohort::cuda::CurrentDevice current(gpu_);
    Tensor result = matrix_on(gpu_, a.rows(), b.columns());
    if (result.elements() == 0) return result;
    if (a.columns() == 0) {
      result.fill(0);
      return result;
    }
    const float one = 1;
    const float zero = 0;
    require(cublasSgemm(handle_, b.operation(), a.operation(), b.columns(), a.rows(), a.columns(), &one,
                        floats(b.matrix), columns_of(b.matrix), floats(a.matrix), columns_of(a.matrix), &zero,
                        floats(result), b.columns()),
            "cublasSgemm");
    return result;
  }

 private:
  Device gpu_;
  cublasHandle_t handle_ = nullptr;
};

Layer make_layer(std::int64_t inputs, std::int64_t outputs, std::mt19937_64& random) {
  return {cohort::Variable(
              {.name = "weights", .initial_value = digits::initial_weights(inputs, outputs, random)}),
          cohort::Variable({.shape = {outputs}, .name = "bias"})};
}

Mlp::Mlp(Layer hidden, Layer output, std::span<const Device> gpus)
    : hidden_(std::move(hidden)), output_(std::move(output)) {
  for (const Device gpu : gpus) cublas_.emplace(gpu, std::make_unique<Cublas>(gpu));
}
Mlp::~Mlp() = default;

const Cublas& Mlp::cublas(Device gpu) const { return *cublas_.at(gpu); }

/// The results of the forward pass that the backward pass needs.
struct Mlp::Forward {
  Device hidden_gpu;
  Device output_gpu;
  Tensor images;  ///< on the hidden layer's
  Tensor output_weights;
  Tensor activations;      ///< [rows, hidden], on the output layer's GPU
  Tensor logits_gradient;  ///< [rows, 10]
  Tensor score;
};

Mlp::Forward Mlp::forward(const digits::Batch& batch, std::int64_t global_batch, Device gpu) const {
  const auto gpu_of = [gpu](const Tensor& weights) { return is_cpu(weights) ? gpu : weights.device(); };
  Forward pass;
  const Tensor hidden_weights = hidden_.weights.read();
  const Device first = pass.hidden_gpu = gpu_of(hidden_weights);
  pass.images = batch.images.to(first);
  const Tensor hidden = cublas(first).product({pass.images}, {hidden_weights.to(first)});
  const Tensor hidden_bias = hidden_.bias.read().to(first);
  launch(first, AddBiasAndTanh{floats(hidden), floats(hidden_bias), rows_of(hidden), columns_of(hidden)});

  const Tensor output_weights = output_.weights.read();
  pass.output_gpu = gpu_of(output_weights);
  pass.output_weights = output_weights.to(pass.output_gpu);
  pass.activations = hidden.to(pass.output_gpu);
  pass.logits_gradient = cublas(pass.output_gpu).product({pass.activations}, {pass.output_weights});
  const Tensor output_bias = output_.bias.read().to(pass.output_gpu);
  const Tensor labels = batch.labels.to(pass.output_gpu);
  const Tensor scores = matrix_on(pass.output_gpu, rows_of(hidden), 2);
  launch(pass.output_gpu,
         SoftmaxCrossEntropy{floats(pass.logits_gradient), floats(output_bias),
                             reinterpret_cast<const std::int32_t*>(labels.data()), floats(scores),
                             rows_of(hidden), columns_of(pass.logits_gradient),
                             static_cast<float>(global_batch)});
  pass.score = sum_of_columns(scores).to(gpu);
  return pass;
}

Step Mlp::step(const digits::Batch& batch, std::int64_t global_batch, Device gpu) const {
  const Forward pass = forward(batch, global_batch, gpu);
  const Cublas& output = cublas(pass.output_gpu);
  const Tensor hidden_gradient =
      output.product({pass.logits_gradient}, transposed(pass.output_weights)).to(pass.hidden_gpu);
  const Tensor activations = pass.activations.to(pass.hidden_gpu);
  launch(pass.hidden_gpu, MultiplyByTanhDerivative{floats(hidden_gradient), floats(activations),
                                                   static_cast<int>(activations.elements())});
  return {pass.score,
          {{cublas(pass.hidden_gpu).product(transposed(pass.images), {hidden_gradient}), hidden_.weights},
           {sum_of_columns(hidden_gradient), hidden_.bias},
           {output.product(transposed(pass.activations), {pass.logits_gradient}), output_.weights},
           {sum_of_columns(pass.logits_gradient), output_.bias}}};
}

Tensor Mlp::evaluate(const digits::Batch& batch, Device gpu) const { return forward(batch, 1, gpu).score; }

}  // namespace gpu_digits
