#include <cohort/train/loss.h>

#include <cohort/strategy/strategy.h>

namespace cohort {
namespace {

std::int64_t global_batch_size(const Tensor& losses, const ReplicaContext& replica,
                               const AverageLossOptions& options) {
  const auto examples = static_cast<std::int64_t>(losses.elements());
  const std::int64_t size = options.global_batch_size.value_or(examples * replica.num_replicas_in_sync());
  if (size > 0) return size;
  throw InvalidArgument("compute_average_loss: the global batch has {} examples; pass global_batch_size",
                        size);
}

double weighted_sum(const Tensor& losses, const std::optional<Tensor>& weights) {
  const Tensor wide = losses.on_host().cast(DType::kFloat64);
  const Tensor wide_weights = weights ? weights->on_host().cast(DType::kFloat64) : Tensor::scalar(1.0);
  const bool one_for_all = wide_weights.elements() == 1;
  if (!one_for_all && wide_weights.shape() != losses.shape()) {
    throw InvalidArgument(
        "compute_average_loss: {} has the weights {}; give one for each loss, or one for all",
        describe(losses), describe(*weights));
  }
  const std::span<const double> values = wide.span<double>();
  const std::span<const double> factors = wide_weights.span<double>();
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * factors[one_for_all ? 0 : i];
  return sum;
}

}  // namespace

Tensor compute_average_loss(const Tensor& per_example_loss, const AverageLossOptions& options) {
  const ReplicaContext* replica = get_replica_context();
  if (replica == nullptr) {
    throw WrongContext(
        "compute_average_loss was called in cross-replica context; call it inside the function given to "
        "run()");
  }
  if (!is_floating(per_example_loss.dtype())) {
    throw InvalidArgument("compute_average_loss: losses are floating, not {}", describe(per_example_loss));
  }
  const auto size = static_cast<double>(global_batch_size(per_example_loss, *replica, options));
  return Tensor::scalar(weighted_sum(per_example_loss, options.sample_weight) / size)
      .cast(per_example_loss.dtype());
}

}  // namespace cohort
