// SyncBatchNorm normalizes each channel of a batch by its mean and variance, and then scales and shifts
// it [Ioffe and Szegedy 2015]. The batch is the global one, of all replicas of all workers, whose parts may
// be uneven or empty:
//
//     SyncBatchNorm norm(64, {.axis = 1, .name = "norm"});              // in the scope of the strategy
//     ... inside run:
//     const NormalizedBatch batch = norm.forward(input);                 // training: one collective
//     const BatchNormGradients by = norm.backward(slope, input, batch.moments);     // one more
//     optimizer.apply_gradients({{by.gamma, *norm.gamma()}, {by.beta, *norm.beta()}, ...});
//     const Tensor output = norm.infer(input);                           // by the moving statistics
//
// Where the communication is `reproducible`, all bits depend on the rows of the global batch alone, not on
// their order, and not on how many replicas and workers share them.
//
// Statistics are computed in float64 on the host, and elements of any floating dtype in float64.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/value/variable.h>

namespace cohort {

/// Whose rows a batch is normalized by.
enum class BatchStatistics {
  kAllReplicas,  ///< those of the global batch
  /// The replica's own, without communication. Then the moving statistics are per replica too (ON_READ);
  /// their mean over the replicas is what is read outside of replicas, and saved.
  kOwnReplica,
};

struct SyncBatchNormOptions {
  int axis = -1;           ///< of the channels: -1 in [rows, channels] and [N, H, W, C], 1 in [N, C, H, W]
  double momentum = 0.99;  ///< what the moving statistics keep of themselves in a step, from 0 to 1
  double epsilon = 0.001;  ///< added to the variance
  bool center = true;      ///< whether there is a beta, which is added
  bool scale = true;       ///< whether there is a gamma, which the output is multiplied with
  BatchStatistics statistics = BatchStatistics::kAllReplicas;
  DType dtype = DType::kFloat32;  ///< of the variables
  std::string name =
      "batch_normalization";  ///< the variables are NAME/gamma, NAME/beta, NAME/moving_mean, ...
};

/// Of each channel of a batch; float64, [channels].
struct BatchMoments {
  std::int64_t rows = 0;  ///< how many numbers a channel has
  Tensor mean;
  Tensor variance;  ///< the mean of the squared deviations, not corrected for the number of rows
};

struct NormalizedBatch {
  Tensor output;  ///< shape and dtype of the input
  BatchMoments moments;
};

struct BatchNormGradients {
  Tensor input;  ///< shape and dtype of the input
  /// This replica's part of the global batch's gradient, [channels], for `apply_gradients` to sum: its rows'
  /// part, or, where the communication is reproducible, all of it on the first replica and zeros on others.
  Tensor gamma;
  Tensor beta;
};

class SyncBatchNorm {
 public:
  /// Makes the variables, in the scope of their strategy: gamma and the moving variance are ones at first,
  /// beta and the moving mean zeros.
  /// @throws InvalidArgument for an option out of its range; Unimplemented where a parameter server would
  /// keep the variables, since its replicas do not step together.
  explicit SyncBatchNorm(std::int64_t channels, SyncBatchNormOptions options = {});

  /// The output of a training step, (input - mean) / sqrt(variance + epsilon) * gamma + beta by the moments
  /// of the batch; the moving statistics follow these. A batch without rows changes nothing. Inside `run`, on
  /// all replicas.
  /// @throws InvalidArgument for an input that is not floating or has other channels; WrongContext in
  /// cross-replica context; what a collective throws.
  [[nodiscard]] NormalizedBatch forward(const Tensor& input) const;

  /// The same by the moving statistics. No collective, except for `kOwnReplica` outside of replicas.
  [[nodiscard]] Tensor infer(const Tensor& input) const;

  /// The gradients of a loss from that by the output of `forward(input)`, which gave `moments`. The loss is
  /// the sum of those of all replicas. Inside `run`, on all replicas.
  /// @throws as `forward`; InvalidArgument for a gradient that does not look like the input.
  [[nodiscard]] BatchNormGradients backward(const Tensor& output_gradient, const Tensor& input,
                                            const BatchMoments& moments) const;

  [[nodiscard]] const std::optional<Variable>& gamma() const noexcept { return gamma_; }
  [[nodiscard]] const std::optional<Variable>& beta() const noexcept { return beta_; }
  [[nodiscard]] const Variable& moving_mean() const noexcept { return moving_mean_; }
  [[nodiscard]] const Variable& moving_variance() const noexcept { return moving_variance_; }

  /// Gamma and beta, as far as there are.
  [[nodiscard]] std::vector<Variable> parameters() const;

 private:
  void require_input(const Tensor& input) const;
  void follow(const Variable& moving, const Tensor& value) const;
  [[nodiscard]] Tensor apply(const Tensor& input, const Tensor& mean, const Tensor& variance) const;

  std::int64_t channels_;
  SyncBatchNormOptions options_;
  std::optional<Variable> gamma_;
  std::optional<Variable> beta_;
  Variable moving_mean_;
  Variable moving_variance_;
};

}  // namespace cohort
