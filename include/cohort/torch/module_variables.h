// The Variables of a module of libtorch: one for each parameter and buffer, which the module's tensors share
// the memory of. So what a strategy, an optimizer or a checkpoint writes, the module reads, and the other way
// round. Each replica of this process has a module of its own: the one given, and clones of it.
//
// Parameters are trainable Variables, those without `requires_grad` and buffers are not. Buffers are ON_READ:
// each replica's module writes its own, and outside replicas floating ones are the mean of all, others those
// of the first replica.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <ATen/Tensor.h>

#include <cohort/train/optimizers/optimizer.h>
#include <cohort/value/variable.h>

namespace torch::nn {
class Module;
}

namespace cohort::libtorch {

class ModuleVariables {
 public:
  /// In the scope of a strategy. All workers get the chief's values; collective as making Variables is.
  /// @throws what that does; InvalidArgument for a module without parameters, and where this process has
  /// several replicas, for one that cannot be cloned (derive it from torch::nn::Cloneable).
  explicit ModuleVariables(std::shared_ptr<torch::nn::Module> module);

  /// Parameters, then buffers, by their names in the module.
  [[nodiscard]] std::span<const Variable> all() const noexcept { return variables_; }

  /// The module of the calling replica; elsewhere that of the first.
  [[nodiscard]] const std::shared_ptr<torch::nn::Module>& of_replica() const;

  /// The gradients of `loss`, a scalar of the calling replica, by its module's trainable parameters; zeros
  /// for those that it does not depend on, and for all where it has no graph.
  [[nodiscard]] std::vector<GradientAndVariable> gradients(const at::Tensor& loss) const;

 private:
  struct Replica {
    std::shared_ptr<torch::nn::Module> module;
    std::vector<at::Tensor> trained;  ///< the parameters of `trained_`
  };

  [[nodiscard]] std::size_t replica_number() const;

  std::vector<Variable> variables_;
  std::vector<Variable> trained_;
  std::vector<Replica> replicas_;
};

}  // namespace cohort::libtorch
