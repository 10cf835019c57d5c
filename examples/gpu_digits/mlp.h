// The network of the digits example, 64 pixels, tanh, 10 classes and cross-entropy, with its arithmetic on
// GPUs. Everything is queued on Cohort's compute streams, so no thread waits for a GPU, and it is in order
// with Cohort's own work on the same tensors.
//
// A layer is computed where its weights are: on the replica's GPU, or on the one of its GPUs that owns them.
// Weights that are kept on the host are copied to the replica's GPU in every step.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include <cohort/train/optimizers/optimizer.h>
#include <cohort/value/variable.h>

#include "../digits/digits_data.h"

namespace gpu_digits {

class Cublas;

/// Made inside a strategy's scope.
struct Layer {
  cohort::Variable weights;  ///< [inputs, outputs]
  cohort::Variable bias;     ///< [outputs]
};
[[nodiscard]] Layer make_layer(std::int64_t inputs, std::int64_t outputs, std::mt19937_64& random);

struct Step {
  cohort::Tensor score;  ///< [loss, right answers], summed over the rows, on the GPU
  std::vector<cohort::GradientAndVariable> gradients;
};

class Mlp {
 public:
  /// For replicas on `gpus`.
  Mlp(Layer hidden, Layer output, std::span<const cohort::Device> gpus);
  ~Mlp();

  // Called inside replicas; the batch is on `gpu`.

  /// The gradient is that of the loss divided by `global_batch`, so that replicas' gradients add up to that
  /// of the mean over the whole batch.
  [[nodiscard]] Step step(const digits::Batch& batch, std::int64_t global_batch, cohort::Device gpu) const;

  /// The same as Step::score, for the batch.
  [[nodiscard]] cohort::Tensor evaluate(const digits::Batch& batch, cohort::Device gpu) const;

 private:
  struct Forward;
  [[nodiscard]] Forward forward(const digits::Batch& batch, std::int64_t global_batch,
                                cohort::Device gpu) const;
  [[nodiscard]] const Cublas& cublas(cohort::Device gpu) const;

  Layer hidden_;
  Layer output_;
  std::map<cohort::Device, std::unique_ptr<Cublas>> cublas_;
};

}  // namespace gpu_digits
