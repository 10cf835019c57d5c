#include <cohort/strategy/strategy.h>
#include <cohort/trainer/detail/model_steps.h>

namespace cohort::detail {

void apply_sum(ReplicaContext& replica, Optimizer& optimizer,
               const std::vector<GradientAndVariable>& gradients, double examples) {
  const double all = replica.all_reduce(ReduceOp::kSum, examples);
  for (const GradientAndVariable& pair : gradients)
    for (float& value : pair.gradient.span<float>()) value = all == 0 ? 0 : value / static_cast<float>(all);
  if (all > 0) optimizer.apply_gradients(gradients, {.aggregation = GradientAggregation::kSumInPlace});
}

}  // namespace cohort::detail
