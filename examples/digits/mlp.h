// A multi-layer perceptron with one hidden layer: 64 pixels, tanh, 10 classes,
// cross-entropy. The arithmetic is Eigen's; the parameters are Cohort's variables.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include <cohort/train/optimizers/optimizer.h>
#include <cohort/value/variable.h>

#include "digits_data.h"

namespace digits {

/// Sums over the rows of a batch.
struct Score {
  double loss = 0;
  std::int64_t correct = 0;
  std::int64_t rows = 0;
};
COHORT_FIELDS(Score, loss, correct, rows)

struct Step {
  Score score;
  std::vector<cohort::GradientAndVariable> gradients;
};

class Mlp {
 public:
  /// Weights are drawn from `seed`; made inside a strategy's scope, they are mirrored.
  Mlp(int hidden, std::uint64_t seed);

  /// A model of these `parameters()`, made elsewhere.
  explicit Mlp(const std::vector<cohort::Variable>& parameters);

  /// The score of the batch and the gradient of its loss, divided by `global_batch`, so that
  /// replicas' gradients add up to that of the mean over the whole batch.
  [[nodiscard]] Step step(const Batch& batch, std::int64_t global_batch) const;

  [[nodiscard]] Score evaluate(const Batch& batch) const;

  [[nodiscard]] std::array<cohort::Variable, 4> parameters() const {
    return {hidden_weights_, hidden_bias_, output_weights_, output_bias_};
  }

 private:
  Mlp(int hidden, std::mt19937_64 random);

  cohort::Variable hidden_weights_;  ///< [64, hidden]
  cohort::Variable hidden_bias_;     ///< [hidden]
  cohort::Variable output_weights_;  ///< [hidden, 10]
  cohort::Variable output_bias_;     ///< [10]
};

}  // namespace digits
