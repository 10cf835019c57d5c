// A Model is what a Trainer trains: parameters, and four functions of one replica's batch.
//
//     class Linear {
//      public:
//       using Batch = std::pair<Tensor, Tensor>;                                 // inputs, labels
//       std::array<Variable, 2> parameters() const;
//       Tensor forward(const Batch& batch) const;                               // the predictions
//       Tensor loss(const Batch& batch, const Tensor& predictions) const;       // of each example, [rows]
//       std::vector<GradientAndVariable> gradients(const Batch& batch, const Tensor& predictions,
//                                                  const std::optional<Tensor>& weights) const;
//     };
//
// The replicas call them at the same time, each with its part of the batch, which may be empty. What
// `forward` returns goes to the others: the predictions, or a structure that has them in `predictions`,
// beside what the gradients need. Gradients are those of the SUM of the losses, each times its weight; the
// optimizer divides by the number of examples of the whole batch. They are summed in place. A model that
// computes otherwise where it is not trained, has a function `infer` beside `forward`, which returns the
// same: `evaluate` and `predict` call it.
//
// Labels are the batch's `labels`, or the second part of a pair or tuple; weights its `weights`, or the third
// part. A model whose `gradients` takes no weights is trained without them.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/train/optimizers/optimizer.h>
#include <cohort/value/structure.h>
#include <cohort/value/variable.h>

namespace cohort {

namespace detail {

template <class Batch>
using ForwardOf = std::remove_cvref_t<Batch>;

template <class M, class Batch>
concept TakesWeights = requires(M& model, const Batch& batch, const std::optional<Tensor>& weights) {
  model.gradients(batch, model.forward(batch), weights);
};

template <class M, class Batch>
concept TakesNoWeights = requires(M& model, const Batch& batch) {
  model.gradients(batch, model.forward(batch));
};

template <class Batch, std::size_t kPart>
concept HasPart = TupleLike<Batch> &&(std::tuple_size_v<Batch> > kPart);

}  // namespace detail

template <class M, class Batch>
concept ModelOf = requires(M& model, const Batch& batch) {
  { model.parameters() } -> std::ranges::input_range;
  model.forward(batch);
  { model.loss(batch, model.forward(batch)) } -> std::convertible_to<Tensor>;
}
&&(detail::TakesWeights<M, Batch> || detail::TakesNoWeights<M, Batch>);

/// The labels of a batch; none where it has none.
template <class Batch>
[[nodiscard]] std::optional<Tensor> labels_of(const Batch& batch) {
  if constexpr (requires {
                  { batch.labels } -> std::convertible_to<std::optional<Tensor>>;
                })
    return batch.labels;
  else if constexpr (detail::HasPart<Batch, 1>)
    return std::get<1>(batch);
  else
    return std::nullopt;
}

/// The weights of a batch's examples; none where it has none, and each counts once.
template <class Batch>
[[nodiscard]] std::optional<Tensor> weights_of(const Batch& batch) {
  if constexpr (requires {
                  { batch.weights } -> std::convertible_to<std::optional<Tensor>>;
                })
    return batch.weights;
  else if constexpr (detail::HasPart<Batch, 2>)
    return std::get<2>(batch);
  else
    return std::nullopt;
}

/// The predictions in what a model's `forward` returned.
template <class Forward>
[[nodiscard]] const Tensor& predictions_of(const Forward& forward) {
  if constexpr (std::is_same_v<Forward, Tensor>)
    return forward;
  else
    return forward.predictions;
}

}  // namespace cohort
