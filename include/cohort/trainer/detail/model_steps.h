// The step functions of a Model.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <cohort/trainer/model.h>
#include <cohort/trainer/step_functions.h>

namespace cohort::detail {

/// Divides by the examples of the whole batch, and updates the parameters; no examples, no update.
void apply_sum(ReplicaContext& replica, Optimizer& optimizer,
               const std::vector<GradientAndVariable>& gradients, double examples);

template <class Batch, class M, class Forward>
[[nodiscard]] decltype(auto) gradients_of(M& model, const Batch& batch, const Forward& forward,
                                          const std::optional<Tensor>& weights) {
  if constexpr (TakesWeights<M, Batch>) {
    return model.gradients(batch, forward, weights);
  } else {
    if (weights)
      throw InvalidArgument(
          "the batch has weights, but the model's gradients() takes none; give it a third parameter, const "
          "std::optional<Tensor>& weights");
    return model.gradients(batch, forward);
  }
}

template <class Batch, class M, class Forward>
[[nodiscard]] StepOutcome outcome_of(M& model, const Batch& batch, const Forward& forward) {
  StepOutcome outcome(model.loss(batch, forward), weights_of(batch));
  outcome.labels = labels_of(batch);
  outcome.predictions = predictions_of(forward);
  return outcome;
}

template <class Batch, class M>
[[nodiscard]] StepFunctions<Batch> model_steps(M& model, Optimizer& optimizer) {
  const auto& parameters = model.parameters();
  return {.train = [&model, &optimizer](ReplicaContext& replica, const Batch& mine) -> StepOutcome {
            const auto& forward = model.forward(mine);
            StepOutcome outcome = outcome_of(model, mine, forward);
            const auto& gradients = gradients_of(model, mine, forward, outcome.weights);
            apply_sum(replica, optimizer, gradients, static_cast<double>(outcome.losses->elements()));
            return outcome;
          },
          .test = [&model](const Batch& mine) { return outcome_of(model, mine, model.forward(mine)); },
          .predict = [&model](const Batch& mine) -> Tensor { return predictions_of(model.forward(mine)); },
          .parameters = std::vector<Variable>(std::ranges::begin(parameters), std::ranges::end(parameters)),
          .optimizer = &optimizer};
}

}  // namespace cohort::detail
