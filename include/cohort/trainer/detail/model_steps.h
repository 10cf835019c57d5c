// The step functions of a Model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/train/losses/loss_reduction.h>
#include <cohort/trainer/model.h>
#include <cohort/trainer/step_functions.h>

namespace cohort::detail {

/// What a model's steps depend on beside the model.
struct ModelSettings {
  LossReduction reduction = LossReduction::kSumOverBatchSize;
  std::map<std::int64_t, double> class_weight = {};  ///< of the fit that runs
};

/// Applies gradients of the sum of losses: divided by the examples of the whole batch, unless the reduction
/// says otherwise; no examples, no update.
void apply_sum(Optimizer& optimizer, const std::vector<GradientAndVariable>& gradients,
               const StepOutcome& outcome, LossReduction reduction);

/// @throws InvalidArgument for a weight that is negative or not finite, naming its class.
void require_usable(const std::map<std::int64_t, double>& class_weight);

/// The weights of examples of these classes. @throws InvalidArgument for labels that are not one class for
/// each example, and where the examples have weights already.
[[nodiscard]] Tensor weights_by_class(const std::map<std::int64_t, double>& class_weight,
                                      const StepOutcome& outcome);

/// What the losses of examples are multiplied with in gradients: their weights, and the optimizer's loss
/// scale, by which it divides the gradients again.
[[nodiscard]] std::optional<Tensor> scaled_weights(const StepOutcome& outcome, const Optimizer& optimizer);

/// @throws InvalidArgument for losses that are not one of each example.
void require_losses_of_rows(const StepOutcome& outcome);

template <class Batch, class M, class Forward>
[[nodiscard]] decltype(auto) gradients_of(M& model, const Batch& batch, const Forward& forward,
                                          const std::optional<Tensor>& weights) {
  if constexpr (TakesWeights<M, Batch>) {
    return model.gradients(batch, forward, weights);
  } else {
    if (weights)
      throw InvalidArgument(
          "the losses of this step have weights, of the batch, of class_weight or of a loss scale, but the "
          "model's gradients() takes none; give it a third parameter, const std::optional<Tensor>& weights");
    return model.gradients(batch, forward);
  }
}

template <class Batch, class M>
[[nodiscard]] decltype(auto) inferred(M& model, const Batch& batch) {
  if constexpr (requires { model.infer(batch); })
    return model.infer(batch);
  else
    return model.forward(batch);
}

template <class Batch, class M, class Forward>
[[nodiscard]] StepOutcome outcome_of(M& model, const Batch& batch, const Forward& forward) {
  StepOutcome outcome(model.loss(batch, forward), weights_of(batch));
  outcome.labels = labels_of(batch);
  outcome.predictions = predictions_of(forward);
  require_losses_of_rows(outcome);
  return outcome;
}

/// The model, the optimizer and the settings outlive the functions.
template <class Batch, class M>
[[nodiscard]] StepFunctions<Batch> model_steps(M& model, Optimizer& optimizer,
                                               const ModelSettings& settings) {
  const auto& parameters = model.parameters();
  return {.train = [&model, &optimizer, &settings](const Batch& mine) -> StepOutcome {
            const auto& forward = model.forward(mine);
            StepOutcome outcome = outcome_of(model, mine, forward);
            if (!settings.class_weight.empty())
              outcome.weights = weights_by_class(settings.class_weight, outcome);
            const auto& gradients = gradients_of(model, mine, forward, scaled_weights(outcome, optimizer));
            apply_sum(optimizer, gradients, outcome, settings.reduction);
            return outcome;
          },
          .test = [&model](const Batch& mine) { return outcome_of(model, mine, inferred(model, mine)); },
          .predict = [&model](const Batch& mine) -> Tensor { return predictions_of(inferred(model, mine)); },
          .parameters = std::vector<Variable>(std::ranges::begin(parameters), std::ranges::end(parameters)),
          .optimizer = &optimizer};
}

}  // namespace cohort::detail
