// The Variables of a module of libtorch: one for each parameter and buffer, which the module's tensors share
// the memory of. So what a strategy, an optimizer or a checkpoint writes, the module reads, and the other way
// round. Each replica of this process has a module of its own: the one given, and clones of it.
//
// What a module has under several names, such as an embedding that is its last layer's weight as well, is one
// Variable, with the first of these names; its gradient is the sum of all that its uses contribute.
//
// Parameters are trainable Variables, those without `requires_grad` and buffers are not. Buffers are ON_READ:
// each replica's module writes its own, and outside replicas floating ones are the mean of all, others those
// of the first replica.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
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
  /// several replicas, for one that cannot be cloned (derive it from torch::nn::Cloneable); for tensors that
  /// share memory without being the same elements in the same order, such as a matrix and its transpose.
  explicit ModuleVariables(std::shared_ptr<torch::nn::Module> module);

  /// Parameters, then buffers, by their names in the module.
  [[nodiscard]] std::span<const Variable> all() const noexcept { return variables_; }

  /// For each of `all()`, its names in the module; the first is the Variable's own.
  [[nodiscard]] std::span<const std::vector<std::string>> names() const noexcept { return names_; }

  /// The module of the calling replica; elsewhere that of the first.
  [[nodiscard]] const std::shared_ptr<torch::nn::Module>& of_replica() const;

  /// The gradients of `loss`, a scalar of the calling replica, by its module's trainable parameters; zeros
  /// for those that it does not depend on, and for all where it has no graph.
  [[nodiscard]] std::vector<GradientAndVariable> gradients(const at::Tensor& loss) const;

 private:
  /// What has a gradient of its own.
  struct Trained {
    at::Tensor tensor;
    std::size_t variable;  ///< its place in `all()`; ascending
  };
  struct Replica {
    std::shared_ptr<torch::nn::Module> module;
    std::vector<Trained> trained;
  };

  /// Makes the tensors of a replica's module show the variables' memory.
  void share(Replica& replica, std::size_t number) const;

  [[nodiscard]] std::size_t replica_number() const;

  std::vector<Variable> variables_;
  std::vector<std::vector<std::string>> names_;
  std::vector<Replica> replicas_;
};

}  // namespace cohort::libtorch
