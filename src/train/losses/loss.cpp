#include <cohort/train/losses/loss.h>

#include <algorithm>

#include <cohort/base/error.h>
#include <cohort/strategy/strategy.h>
#include <cohort/train/losses/average_loss.h>
#include <cohort/train/losses/loss_reduction.h>

#include "train/rows.h"

namespace cohort {
namespace {

DType dtype_of_losses(const Tensor& predictions) {
  return predictions.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

Shape shape_of_losses(const Tensor& predictions) {
  const Shape& shape = predictions.shape();
  return shape.rank() < 2 ? shape : shape.without(-1);
}

void require_output(const std::string& name, const Tensor& output, const Shape& shape, DType dtype) {
  if (output.shape() == shape && output.dtype() == dtype) return;
  throw InvalidArgument("{}: the result is {}{}, but the output {}", name, to_string(dtype), to_string(shape),
                        describe(output));
}

}  // namespace

Tensor Loss::operator()(const Tensor& labels, const Tensor& predictions) const {
  require_floating(predictions, name_);
  Tensor losses = Tensor::uninitialized(shape_of_losses(predictions), dtype_of_losses(predictions));
  rule_->values(labels, predictions, losses);
  return losses;
}

void Loss::values(const Tensor& labels, const Tensor& predictions, const Tensor& output) const {
  require_floating(predictions, name_);
  require_output(name_, output, shape_of_losses(predictions), dtype_of_losses(predictions));
  if (is_cpu(output)) return rule_->values(labels, predictions, output);
  output.copy_from((*this)(labels, predictions).to(output.device()));
}

Tensor Loss::gradients(const Tensor& labels, const Tensor& predictions,
                       const std::optional<Tensor>& sample_weight) const {
  Tensor result = Tensor::uninitialized(predictions.shape(), predictions.dtype(), predictions.device());
  write_gradients(labels, predictions, sample_weight, result);
  return result;
}

void Loss::write_gradients(const Tensor& labels, const Tensor& predictions,
                           const std::optional<Tensor>& sample_weight, const Tensor& output) const {
  require_floating(predictions, name_);
  require_output(name_, output, predictions.shape(), predictions.dtype());
  rule_->gradients(labels, predictions, sample_weight ? &*sample_weight : nullptr, output);
}

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
