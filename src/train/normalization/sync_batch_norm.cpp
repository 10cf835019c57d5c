#include <cohort/train/normalization/sync_batch_norm.h>

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <cohort/strategy/strategy.h>

#include "batch_sums.h"

namespace cohort {
namespace {

void require_options(std::int64_t channels, const SyncBatchNormOptions& options) {
  const auto refuse = [&](std::string_view what) {
    throw InvalidArgument("SyncBatchNorm '{}': {}", options.name, what);
  };
  if (channels < 1) refuse(fmt::format("it has {} channels; give at least one", channels));
  if (!(options.momentum >= 0 && options.momentum <= 1))
    refuse(fmt::format("the momentum is {}; give 0 to 1", options.momentum));
  if (!std::isfinite(options.epsilon) || options.epsilon < 0)
    refuse(fmt::format("epsilon is {}; give a number that is not negative", options.epsilon));
  if (options.dtype != DType::kFloat32 && options.dtype != DType::kFloat64)
    refuse(fmt::format("its variables cannot be {}; give float32 or float64", to_string(options.dtype)));
}

Variable parameter(std::int64_t channels, const SyncBatchNormOptions& options, std::string_view name,
                   double value) {
  return Variable({.name = fmt::format("{}/{}", options.name, name),
                   .initial_value = Tensor::full({channels}, options.dtype, value)});
}

/// Each replica has the same statistics, or each its own.
Variable moving(std::int64_t channels, const SyncBatchNormOptions& options, std::string_view name,
                double value) {
  const bool is_own = options.statistics == BatchStatistics::kOwnReplica;
  return Variable(
      {.name = fmt::format("{}/{}", options.name, name),
       .initial_value = Tensor::full({channels}, options.dtype, value),
       .synchronization = is_own ? VariableSynchronization::kOnRead : VariableSynchronization::kAuto,
       .aggregation = VariableAggregation::kMean,
       .trainable = false});
}

const ReplicaContext& require_replica(const char* what) {
  if (const ReplicaContext* replica = get_replica_context()) return *replica;
  throw WrongContext("SyncBatchNorm::{} was called in cross-replica context; call it inside run()", what);
}

/// One copy for several replicas.
bool is_shared(const Variable& variable) {
  const VariableOwner* owner = variable.state()->owner();
  return owner != nullptr && owner->local_replicas() > 1 && variable.components().size() == 1;
}

Tensor host_numbers(const Variable& variable) { return variable.read().on_host().cast(DType::kFloat64); }

/// A parameter's value in float64, or what stands for one that there is not.
Tensor value_of(const std::optional<Variable>& variable, std::int64_t channels, double otherwise) {
  return variable ? host_numbers(*variable) : Tensor::full({channels}, DType::kFloat64, otherwise);
}

/// With x' = (x - mean) / deviation: dx = gamma / deviation (dy - mean of dy - x' * mean of dy x').
struct SlopeTerms {
  explicit SlopeTerms(const Tensor& gamma)
      : factors(gamma),
        means(Tensor::zeros(gamma.shape(), DType::kFloat64)),
        projections(Tensor::zeros(gamma.shape(), DType::kFloat64)) {}

  /// `mean_of_products` is that of dy (x - mean).
  void set(std::size_t channel, double variance, double mean_slope, double mean_of_products) const {
    factors.span<double>()[channel] /= std::sqrt(variance);
    means.span<double>()[channel] = mean_slope;
    projections.span<double>()[channel] = mean_of_products / variance;
  }

  Tensor factors;
  Tensor means;        ///< of dy
  Tensor projections;  ///< of dy on x - mean
};

Tensor slopes_by_input(const Tensor& slopes, const Tensor& rows, const Tensor& mean, const SlopeTerms& terms,
                       const Channels& channels) {
  Tensor result = Tensor::uninitialized(rows.shape(), rows.dtype());
  visit_floating_elements(rows, [&]<class T>(std::type_identity<T>) {
    const T* const values = rows.span<T>().data();
    const T* const slope = slopes.span<T>().data();
    T* const to = result.span<T>().data();
    const double* const means = mean.span<double>().data();
    const double* const factor = terms.factors.span<double>().data();
    const double* const mean_slope = terms.means.span<double>().data();
    const double* const projection = terms.projections.span<double>().data();
    channels.for_each([&](std::size_t c, std::size_t i) {
      const double deviation = convert_element<double>(values[i]) - means[c];
      const double rest = convert_element<double>(slope[i]) - mean_slope[c] - deviation * projection[c];
      to[i] = convert_element<T>(factor[c] * rest);
    });
  });
  return result;
}

}  // namespace

SyncBatchNorm::SyncBatchNorm(std::int64_t channels, SyncBatchNormOptions options)
    : channels_((require_options(channels, options), channels)),
      options_(std::move(options)),
      gamma_(options_.scale ? std::optional(parameter(channels, options_, "gamma", 1)) : std::nullopt),
      beta_(options_.center ? std::optional(parameter(channels, options_, "beta", 0)) : std::nullopt),
      moving_mean_(moving(channels, options_, "moving_mean", 0)),
      moving_variance_(moving(channels, options_, "moving_variance", 1)) {
  if (!moving_mean_.state()->is_kept_elsewhere()) return;
  throw Unimplemented(
      "SyncBatchNorm '{}': its variables would be on parameter servers, whose replicas do not step together; "
      "use a synchronous strategy",
      options_.name);
}

std::vector<Variable> SyncBatchNorm::parameters() const {
  std::vector<Variable> all;
  if (gamma_) all.push_back(*gamma_);
  if (beta_) all.push_back(*beta_);
  return all;
}

void SyncBatchNorm::require_input(const Tensor& input) const {
  const Shape& shape = input.shape();
  const int axis = options_.axis < 0 ? options_.axis + shape.rank() : options_.axis;
  if (is_floating(input.dtype()) && axis >= 0 && axis < shape.rank() && shape[axis] == channels_) return;
  throw InvalidArgument(
      "SyncBatchNorm '{}' of {} channels along axis {}: it cannot normalize {}; give floating numbers with "
      "as many "
      "channels along that axis",
      options_.name, channels_, options_.axis, describe(input));
}

NormalizedBatch SyncBatchNorm::forward(const Tensor& input) const {
  const ReplicaContext& replica = require_replica("forward");
  replica.or_abort_replicas([&] { require_input(input); });
  const Tensor rows = input.on_host();
  const BatchOfReplicas batch(replica, moving_mean_, options_.statistics);
  const BatchMoments moments =
      batch.moments(rows, Channels(input.shape(), input.shape().normalize_axis(options_.axis)));
  if (moments.rows > 0) {
    follow(moving_mean_, moments.mean);
    follow(moving_variance_, moments.variance);
  }
  return {apply(input, moments.mean, moments.variance), moments};
}

Tensor SyncBatchNorm::infer(const Tensor& input) const {
  require_input(input);
  return apply(input, host_numbers(moving_mean_), host_numbers(moving_variance_));
}

void SyncBatchNorm::follow(const Variable& moving, const Tensor& value) const {
  const auto followed = [this, &value](const Tensor& average) {
    const Tensor result = average.on_host().cast(DType::kFloat64).clone();
    for (std::size_t c = 0; c < result.elements(); ++c)
      result.span<double>()[c] =
          result.span<double>()[c] * options_.momentum + value.span<double>()[c] * (1 - options_.momentum);
    return result.cast(average.dtype()).to(average.device());
  };
  // What all replicas compute alike needs no aggregation.
  if (!is_shared(moving))
    moving.replica_component().copy_from(followed(moving.replica_component()));
  else if (options_.statistics == BatchStatistics::kOwnReplica)
    moving.assign(followed(moving.read()));
  else
    get_strategy().extended().update(
        moving, [&followed](const Variable& copy) { copy.assign(followed(copy.read())); });
}

Tensor SyncBatchNorm::apply(const Tensor& input, const Tensor& mean, const Tensor& variance) const {
  const Channels channels(input.shape(), input.shape().normalize_axis(options_.axis));
  const Tensor factors = value_of(gamma_, channels_, 1).clone();
  const Tensor shifts = value_of(beta_, channels_, 0);
  for (std::size_t c = 0; c < channels.count; ++c)
    factors.span<double>()[c] /= std::sqrt(variance.span<double>()[c] + options_.epsilon);
  const Tensor rows = input.on_host();
  const Tensor output = Tensor::uninitialized(input.shape(), input.dtype());
  visit_floating_elements(rows, [&]<class T>(std::type_identity<T>) {
    const T* const from = rows.span<T>().data();
    T* const to = output.span<T>().data();
    const double* const means = mean.span<double>().data();
    const double* const factor = factors.span<double>().data();
    const double* const shift = shifts.span<double>().data();
    channels.for_each([&](std::size_t c, std::size_t i) {
      to[i] = convert_element<T>((convert_element<double>(from[i]) - means[c]) * factor[c] + shift[c]);
    });
  });
  return output.to(input.device());
}

BatchNormGradients SyncBatchNorm::backward(const Tensor& output_gradient, const Tensor& input,
                                           const BatchMoments& moments) const {
  const ReplicaContext& replica = require_replica("backward");
  replica.or_abort_replicas([&] {
    require_input(input);
    if (output_gradient.shape() == input.shape() && output_gradient.dtype() == input.dtype()) return;
    throw InvalidArgument("SyncBatchNorm '{}': the gradient {} does not look like the input {}",
                          options_.name, describe(output_gradient), describe(input));
  });
  const Channels channels(input.shape(), input.shape().normalize_axis(options_.axis));
  const Tensor rows = input.on_host();
  const Tensor slopes = output_gradient.on_host();
  const BatchOfReplicas batch(replica, moving_mean_, options_.statistics);
  const auto sums = batch.gradient_sums(slopes, rows, moments.mean, channels);

  SlopeTerms terms(value_of(gamma_, channels_, 1).clone());
  const Tensor by_gamma = Tensor::zeros({channels_}, DType::kFloat64);
  for (std::size_t c = 0; moments.rows > 0 && c < channels.count; ++c) {
    const double variance = moments.variance.span<double>()[c] + options_.epsilon;
    const std::size_t product = channels.count + c;
    terms.set(c, variance, sums.of_batch.span<double>()[c] / static_cast<double>(moments.rows),
              sums.of_batch.span<double>()[product] / static_cast<double>(moments.rows));
    by_gamma.span<double>()[c] = sums.of_this_replica.span<double>()[product] / std::sqrt(variance);
  }
  const auto as_variable = [&](const Tensor& gradient) {
    return gradient.cast(options_.dtype).to(input.device());
  };
  return {slopes_by_input(slopes, rows, moments.mean, terms, channels).to(input.device()),
          as_variable(by_gamma), as_variable(sums.of_this_replica.row(0))};
}

}  // namespace cohort
