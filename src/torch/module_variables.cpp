#include <cohort/torch/module_variables.h>

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>

#include <cohort/strategy/strategy.h>
#include <cohort/torch/tensor.h>
#include <cohort/value/context.h>

#include "module_state.h"

namespace cohort::libtorch {
namespace {

Variable variable_of(const NamedTensor& parameter) {
  return Variable({.name = parameter.name,
                   .initial_value = to_cohort(parameter.tensor.contiguous()),
                   .trainable = parameter.tensor.requires_grad()});
}

Variable buffer_variable_of(const NamedTensor& buffer) {
  const bool floating = is_floating(to_cohort(buffer.tensor.scalar_type()));
  return Variable(
      {.name = buffer.name,
       .initial_value = to_cohort(buffer.tensor.contiguous()),
       .synchronization = VariableSynchronization::kOnRead,
       .aggregation = floating ? VariableAggregation::kMean : VariableAggregation::kOnlyFirstReplica,
       .trainable = false});
}

/// Parameters, then buffers.
std::vector<NamedTensor> tensors_of(const torch::nn::Module& module) {
  std::vector<NamedTensor> tensors = parameters_of(module);
  std::ranges::move(buffers_of(module), std::back_inserter(tensors));
  return tensors;
}

std::shared_ptr<torch::nn::Module> clone_of(const torch::nn::Module& module) {
  try {
    return module.clone();
  } catch (const c10::Error& error) {
    throw InvalidArgument(
        "each replica of this process needs a module of its own, and this one cannot be cloned; derive it "
        "from torch::nn::Cloneable: {}",
        error.what_without_backtrace());
  }
}

}  // namespace

ModuleVariables::ModuleVariables(std::shared_ptr<torch::nn::Module> module) {
  const std::vector<NamedTensor> parameters = parameters_of(*module);
  if (parameters.empty()) throw InvalidArgument("the module of libtorch has no parameters");
  for (const NamedTensor& parameter : parameters) variables_.push_back(variable_of(parameter));
  for (const NamedTensor& buffer : buffers_of(*module)) variables_.push_back(buffer_variable_of(buffer));
  std::ranges::copy_if(variables_, std::back_inserter(trained_), &Variable::trainable);

  replicas_.resize(static_cast<std::size_t>(get_strategy().extended().local_replicas()));
  for (std::size_t number = 0; number < replicas_.size(); ++number) {
    Replica& replica = replicas_[number];
    replica.module = number == 0 ? module : clone_of(*module);
    const std::vector<NamedTensor> tensors = tensors_of(*replica.module);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto components = variables_[i].components();
      tensors[i].tensor.set_data(to_torch(components[std::min(number, components.size() - 1)]));
      if (variables_[i].trainable()) replica.trained.push_back(tensors[i].tensor);
    }
  }
}

std::size_t ModuleVariables::replica_number() const {
  // -1 outside of replicas.
  const int local = std::max(current_mode().local_replica, 0);
  return std::min(static_cast<std::size_t>(local), replicas_.size() - 1);
}

const std::shared_ptr<torch::nn::Module>& ModuleVariables::of_replica() const {
  return replicas_[replica_number()].module;
}

std::vector<GradientAndVariable> ModuleVariables::gradients(const at::Tensor& loss) const {
  const std::vector<at::Tensor>& trained = replicas_[replica_number()].trained;
  std::vector<at::Tensor> gradients(trained.size());
  if (loss.requires_grad()) gradients = torch::autograd::grad({loss}, trained, {}, {}, false, true);
  std::vector<GradientAndVariable> pairs;
  pairs.reserve(trained.size());
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const at::Tensor gradient =
        gradients[i].defined() ? gradients[i].contiguous() : at::zeros_like(trained[i]);
    pairs.push_back({to_cohort(gradient), trained_[i]});
  }
  return pairs;
}

}  // namespace cohort::libtorch
