#include <cohort/train/losses/loss_reduction.h>

#include <algorithm>

#include <cohort/base/error.h>
#include <cohort/strategy/strategy.h>

#include "train/rows.h"

namespace cohort {
namespace {

void require_fit(const Tensor& losses, const ReduceLossesOptions& options) {
  if (!is_floating(losses.dtype()))
    throw InvalidArgument("reduce_losses: losses must be floating-point, got {}", describe(losses));
  if (!options.mask || options.mask->shape() == losses.shape()) return;
  throw InvalidArgument("reduce_losses: the losses are {} and the mask {}; give both the same shape",
                        describe(losses), describe(*options.mask));
}

/// The weight of each loss; 0 where the mask is.
Tensor weights_of(const Tensor& losses, const ReduceLossesOptions& options) {
  Tensor weights = Tensor::full(losses.shape(), DType::kFloat64, 1);
  const std::span<double> each = weights.span<double>();
  if (options.sample_weight) {
    const std::size_t together = values_per_weight(losses, *options.sample_weight, "reduce_losses");
    const auto given = elements_as<double>(*options.sample_weight, Part::kWeights);
    for (std::size_t i = 0; i < each.size(); ++i) each[i] = given[i / together];
  }
  if (options.mask) {
    const auto mask = elements_as<double>(*options.mask, Part::kWeights);
    for (std::size_t i = 0; i < each.size(); ++i) each[i] = mask[i] == 0 ? 0 : each[i];
  }
  return weights;
}

double sum(const Tensor& tensor) {
  const auto values = tensor.span<double>();
  return sum_of<double>(values.size(), [&](std::size_t i) { return values[i]; });
}

/// The losses times their weights; what does not count is 0, whatever it was.
Tensor weighted(const Tensor& losses, const Tensor& weights) {
  Tensor result = Tensor::uninitialized(losses.shape(), DType::kFloat64);
  const auto values = elements_as<double>(losses, Part::kPredictions);
  const auto factors = weights.span<double>();
  const auto products = result.span<double>();
  for (std::size_t i = 0; i < values.size(); ++i) products[i] = factors[i] == 0 ? 0 : factors[i] * values[i];
  return result;
}

double examples_of(const Tensor& losses, const ReduceLossesOptions& options) {
  if (!options.mask) return static_cast<double>(losses.elements());
  const auto mask = elements_as<double>(*options.mask, Part::kWeights);
  return static_cast<double>(mask.size()) - static_cast<double>(std::ranges::count(mask, 0.0));
}

}  // namespace

Tensor reduce_losses(const Tensor& losses, const ReduceLossesOptions& options) {
  require_fit(losses, options);
  const Tensor weights = weights_of(losses, options);
  const Tensor products = weighted(losses, weights);
  if (options.reduction == LossReduction::kNone) return products.cast(losses.dtype()).to(losses.device());
  const double total = sum(products);
  if (options.reduction == LossReduction::kSum) return Tensor::scalar(total).cast(losses.dtype());
  double divisor =
      options.reduction == LossReduction::kSumOverBatchSize ? examples_of(losses, options) : sum(weights);
  const ReplicaContext* const replica = get_replica_context();
  if (replica != nullptr && replica->num_replicas_in_sync() > 1)
    divisor = replica->all_reduce(ReduceOp::kSum, Tensor::scalar(divisor)).item<double>();
  return Tensor::scalar(divisor == 0 ? 0 : total / divisor).cast(losses.dtype());
}

}  // namespace cohort
