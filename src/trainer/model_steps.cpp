#include <cohort/trainer/detail/model_steps.h>

#include <cohort/trainer/detail/epoch_metrics.h>

namespace cohort::detail {

void apply_sum(Optimizer& optimizer, const std::vector<GradientAndVariable>& gradients,
               const StepOutcome& outcome, LossReduction reduction) {
  ApplyOptions options{.aggregation = GradientAggregation::kSumInPlace};
  if (reduction != LossReduction::kSum) options.examples = examples_of(outcome, reduction);
  optimizer.apply_gradients(gradients, options);
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
