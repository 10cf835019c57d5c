// A Model makes a module of libtorch what a Trainer trains, under any strategy:
//
//     torch::nn::Sequential net(torch::nn::Flatten(), torch::nn::Linear(64, 10));
//     libtorch::Model model(net, [](const at::Tensor& outputs, const at::Tensor& labels) {
//       return torch::nll_loss(outputs.log_softmax(1), labels, {}, at::Reduction::None);
//     });
//     Adam optimizer({.learning_rate = 0.01});
//     Trainer(strategy, model, optimizer).fit(digits.batch(64), {.epochs = 10});
//
// `net->forward(inputs)` is called in training mode for training, and in evaluation mode otherwise, and for a
// replica without examples. The loss function returns a loss for each example, [rows]. Batches are pairs of
// inputs and labels, which share the memory of libtorch's tensors.
//
// It is made in the scope of the strategy, which it belongs to. See module_variables.h for what parameters
// and buffers become.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <cohort/torch/module_variables.h>
#include <cohort/torch/tensor.h>

namespace cohort::libtorch {

template <class Module>
class Model {
 public:
  using Batch = std::pair<Tensor, Tensor>;  ///< inputs and labels
  using LossFunction = std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& labels)>;

  /// What `forward` passes on to `loss` and `gradients`.
  struct Forward {
    Tensor predictions;
    at::Tensor outputs;  ///< the same, with their graph
  };

  /// @throws what ModuleVariables throws.
  Model(std::shared_ptr<Module> module, LossFunction loss)
      : variables_(std::move(module)), loss_(std::move(loss)) {}

  /// The same for a module in a holder, as `torch::nn::Sequential`.
  template <class Holder>
  requires requires(const Holder& holder) { holder.ptr(); }
  Model(const Holder& holder, LossFunction loss) : Model(holder.ptr(), std::move(loss)) {}

  /// Parameters, then buffers, which are not trainable.
  [[nodiscard]] std::span<const Variable> parameters() const noexcept { return variables_.all(); }

  /// Each of them with all the names that the module has for it.
  [[nodiscard]] std::span<const std::vector<std::string>> names() const noexcept {
    return variables_.names();
  }

  /// The calling replica's module; elsewhere the first.
  [[nodiscard]] Module& module() const { return dynamic_cast<Module&>(*variables_.of_replica()); }

  // What a Trainer calls, inside replicas; see trainer/model.h.

  [[nodiscard]] Forward forward(const Batch& batch) const {
    if (batch.first.shape()[0] == 0) return infer(batch);
    module().train();
    return outputs_of(batch);
  }

  /// Without a graph.
  [[nodiscard]] Forward infer(const Batch& batch) const {
    const at::NoGradGuard no_gradients;
    module().eval();
    return outputs_of(batch);
  }

  [[nodiscard]] Tensor loss(const Batch& batch, const Forward& forward) const {
    const at::NoGradGuard no_gradients;
    return to_cohort(losses(batch, forward).contiguous());
  }

  [[nodiscard]] std::vector<GradientAndVariable> gradients(const Batch& batch, const Forward& forward,
                                                           const std::optional<Tensor>& weights) const {
    const at::Tensor each = losses(batch, forward);
    return variables_.gradients(weights ? each.mul(to_torch(*weights)).sum() : each.sum());
  }

 private:
  [[nodiscard]] Forward outputs_of(const Batch& batch) const {
    at::Tensor outputs = module().forward(to_torch(batch.first));
    Tensor predictions = to_cohort(outputs.contiguous());
    return {std::move(predictions), std::move(outputs)};
  }

  /// @throws InvalidArgument unless there is one for each example.
  [[nodiscard]] at::Tensor losses(const Batch& batch, const Forward& forward) const {
    at::Tensor each = loss_(forward.outputs, to_torch(batch.second));
    if (each.dim() == 1 && each.size(0) == batch.first.shape()[0]) return each;
    throw InvalidArgument(
        "the loss function of libtorch::Model returned {} for {} examples; it returns a loss for each "
        "example, as with at::Reduction::None",
        describe(spec_of(each)), batch.first.shape()[0]);
  }

  ModuleVariables variables_;
  LossFunction loss_;
};

template <class Holder, class Loss>
requires requires(const Holder& holder) { holder.ptr(); }
Model(const Holder&, Loss)
    ->Model<typename std::remove_cvref_t<decltype(std::declval<const Holder&>().ptr())>::element_type>;
template <class Module, class Loss>
Model(std::shared_ptr<Module>, Loss) -> Model<Module>;

}  // namespace cohort::libtorch
