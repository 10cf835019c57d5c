#include <cohort/trainer/detail/model_steps.h>

#include <cmath>

#include <cohort/trainer/detail/epoch_metrics.h>

namespace cohort::detail {

void apply_sum(Optimizer& optimizer, const std::vector<GradientAndVariable>& gradients,
               const StepOutcome& outcome, LossReduction reduction) {
  ApplyOptions options{.aggregation = GradientAggregation::kSumInPlace};
  if (reduction != LossReduction::kSum) options.examples = examples_of(outcome, reduction);
  optimizer.apply_gradients(gradients, options);
}

std::optional<Tensor> scaled_weights(const StepOutcome& outcome, const Optimizer& optimizer) {
  if (!optimizer.update_options().loss_scale) return outcome.weights;
  const double scale = optimizer.loss_scale();
  const Device device = outcome.losses->device();
  const Tensor scaled =
      outcome.weights
          ? outcome.weights->on_host().cast(DType::kFloat32).clone()
          : Tensor::full({static_cast<std::int64_t>(outcome.losses->elements())}, DType::kFloat32, 1);
  for (float& weight : scaled.span<float>()) weight = static_cast<float>(weight * scale);
  return is_cpu(device) ? scaled : scaled.to(device);
}

void require_losses_of_rows(const StepOutcome& outcome) {
  if (!outcome.losses || !outcome.predictions || outcome.predictions->shape().rank() == 0) return;
  const std::int64_t rows = outcome.predictions->shape()[0];
  const auto losses = static_cast<std::int64_t>(outcome.losses->elements());
  if (losses == rows || losses > 1) return;
  throw InvalidArgument(
      "the model's loss() returned {} losses for predictions of {} examples; it returns one for each "
      "example, "
      "and not their sum or mean: the Trainer divides by the examples of all replicas",
      losses, rows);
}

void require_usable(const std::map<std::int64_t, double>& class_weight) {
  for (const auto& [label, weight] : class_weight) {
    if (!std::isfinite(weight) || weight < 0)
      throw InvalidArgument(
          "fit: class_weight of class {} is {}; it must be a finite number, and not negative", label, weight);
  }
}

Tensor weights_by_class(const std::map<std::int64_t, double>& class_weight, const StepOutcome& outcome) {
  if (outcome.weights)
    throw InvalidArgument(
        "fit: class_weight was given, but the batches have weights already; multiply them into those");
  const std::size_t examples = outcome.losses->elements();
  if (!outcome.labels || outcome.labels->elements() != examples)
    throw InvalidArgument("fit: class_weight needs a label for each of the {} examples; the labels are {}",
                          examples, outcome.labels ? describe(*outcome.labels) : "missing");
  const Tensor classes = outcome.labels->on_host().cast(DType::kInt64);
  Tensor weights = Tensor::full({static_cast<std::int64_t>(examples)}, DType::kFloat32, 1);
  for (std::size_t i = 0; i < examples; ++i) {
    const auto found = class_weight.find(classes.span<std::int64_t>()[i]);
    if (found != class_weight.end()) weights.span<float>()[i] = static_cast<float>(found->second);
  }
  return weights;
}

}  // namespace cohort::detail
