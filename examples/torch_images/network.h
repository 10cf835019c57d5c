// A small convolutional network of libtorch, as a model that a Trainer trains: Cohort keeps the parameters,
// of which libtorch sees the same memory; libtorch computes losses and gradients.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <cohort/train/optimizers/optimizer.h>
#include <cohort/value/variable.h>

#include "../digits/digits_data.h"

namespace torch_images {

class Network {
 public:
  using Batch = digits::Batch;

  /// What the gradients need of a forward pass.
  struct Forward {
    cohort::Tensor predictions;          ///< [rows, 10], logits
    std::vector<at::Tensor> parameters;  ///< as libtorch differentiates by them
    at::Tensor losses;                   ///< [rows]
  };

  /// Two convolutions, each with a pooling, and a linear layer.
  explicit Network(std::uint64_t seed);

  [[nodiscard]] const std::array<cohort::Variable, 6>& parameters() const { return parameters_; }
  [[nodiscard]] Forward forward(const Batch& batch) const;
  [[nodiscard]] static cohort::Tensor loss(const Batch& batch, const Forward& forward);
  [[nodiscard]] std::vector<cohort::GradientAndVariable> gradients(
      const Batch& batch, const Forward& forward, const std::optional<cohort::Tensor>& weights) const;

 private:
  std::array<cohort::Variable, 6> parameters_;
};

}  // namespace torch_images
