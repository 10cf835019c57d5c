#include <cohort/train/losses/average_loss.h>

#include <cohort/strategy/strategy.h>

#include "train/rows.h"

namespace cohort {
namespace {

std::int64_t global_batch_size(const Tensor& losses, const AverageLossOptions& options) {
  if (options.global_batch_size) {
    if (*options.global_batch_size >= 0) return *options.global_batch_size;
    throw InvalidArgument("compute_average_loss: global_batch_size is {}; give the number of examples",
                          *options.global_batch_size);
  }
  const ReplicaContext* replica = get_replica_context();
  if (replica == nullptr) {
    throw WrongContext(
        "compute_average_loss was called in cross-replica context, where no replica's examples are counted; "
        "call it inside the function given to run(), or pass global_batch_size");
  }
  return static_cast<std::int64_t>(losses.elements()) * replica->num_replicas_in_sync();
}

void require_losses(const Tensor& losses, const char* function) {
  if (is_floating(losses.dtype())) return;
  throw InvalidArgument("{}: losses must be floating-point, got {}", function, describe(losses));
}

double weighted_sum(const Tensor& losses, const std::optional<Tensor>& weights) {
  const Tensor wide = losses.on_host().cast(DType::kFloat64);
  const Tensor wide_weights = weights ? weights->on_host().cast(DType::kFloat64) : Tensor::scalar(1.0);
  const std::size_t together =
      values_per_weight(losses, weights ? *weights : wide_weights, "compute_average_loss");
  const std::span<const double> values = wide.span<double>();
  const std::span<const double> factors = wide_weights.span<double>();
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * factors[i / together];
  return sum;
}

}  // namespace

Tensor compute_average_loss(const Tensor& per_example_loss, const AverageLossOptions& options) {
  require_losses(per_example_loss, "compute_average_loss");
  const auto size = static_cast<double>(global_batch_size(per_example_loss, options));
  const double sum = weighted_sum(per_example_loss, options.sample_weight);
  // At the end of the data a replica may have no examples; its part of the loss is 0.
  return Tensor::scalar(size == 0 ? 0 : sum / size).cast(per_example_loss.dtype());
}

Tensor scale_regularization_loss(const Tensor& losses) {
  require_losses(losses, "scale_regularization_loss");
  const ReplicaContext* replica = get_replica_context();
  if (replica == nullptr) {
    throw WrongContext(
        "scale_regularization_loss was called in cross-replica context, where no replica takes its part; "
        "call "
        "it inside the function given to run()");
  }
  return Tensor::scalar(weighted_sum(losses, {}) / replica->num_replicas_in_sync()).cast(losses.dtype());
}

}  // namespace cohort
