#include <cohort/torch/module_variables.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>

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

/// Tensors of a module with the same elements in the same memory: what one Variable is made of.
struct SharedTensor {
  at::Tensor tensor;
  std::vector<std::string> names = {};
  bool is_parameter = false;
  bool requires_grad = false;
};

Variable variable_of(const SharedTensor& shared) {
  VariableOptions options{.name = shared.names.front(),
                          .initial_value = to_cohort(shared.tensor.detach().contiguous()),
                          .trainable = shared.requires_grad};
  if (!shared.is_parameter) {
    const bool floating = is_floating(to_cohort(shared.tensor.scalar_type()));
    options.synchronization = VariableSynchronization::kOnRead;
    options.aggregation = floating ? VariableAggregation::kMean : VariableAggregation::kOnlyFirstReplica;
  }
  return Variable(options);
}

/// Where the elements are in memory. Empty tensors share nothing.
bool same_elements(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() > 0 && a.data_ptr() == b.data_ptr() && a.scalar_type() == b.scalar_type() &&
         a.sizes() == b.sizes() && a.strides() == b.strides();
}

/// @throws InvalidArgument where two share a part of their memory: the Variables would part it.
void require_apart(std::vector<SharedTensor> tensors) {
  std::erase_if(tensors, [](const SharedTensor& each) {
    return each.tensor.numel() == 0 || !each.tensor.is_non_overlapping_and_dense();
  });
  const auto begin = [](const SharedTensor& each) {
    return static_cast<const std::byte*>(each.tensor.data_ptr());
  };
  std::ranges::sort(tensors, {}, begin);
  const auto overlap =
      std::ranges::adjacent_find(tensors, [&](const SharedTensor& first, const SharedTensor& second) {
        return begin(first) + first.tensor.nbytes() > begin(second);
      });
  if (overlap == tensors.end()) return;
  throw InvalidArgument(
      "'{}' and '{}' of the module of libtorch share memory, but are not the same elements in the same "
      "order; "
      "register one of them, and make the other from it in forward()",
      overlap->names.front(), std::next(overlap)->names.front());
}

/// Parameters, then buffers.
std::vector<SharedTensor> shared_tensors_of(const torch::nn::Module& module) {
  std::vector<SharedTensor> tensors;
  std::unordered_multimap<const void*, std::size_t> known;
  const auto add = [&](std::vector<NamedTensor> named, bool is_parameter) {
    for (NamedTensor& each : named) {
      const auto [first, last] = known.equal_range(each.tensor.data_ptr());
      const auto same = std::find_if(first, last, [&](const auto& entry) {
        return same_elements(tensors[entry.second].tensor, each.tensor);
      });
      const std::size_t place = same == last ? tensors.size() : same->second;
      if (same == last) {
        known.emplace(each.tensor.data_ptr(), place);
        tensors.push_back({.tensor = each.tensor, .is_parameter = is_parameter});
      }
      SharedTensor& shared = tensors[place];
      shared.names.push_back(std::move(each.name));
      std::ranges::move(each.more_names, std::back_inserter(shared.names));
      shared.requires_grad |= is_parameter && each.tensor.requires_grad();
    }
  };
  add(parameters_of(module), true);
  add(buffers_of(module), false);
  require_apart(tensors);
  return tensors;
}

/// By each name that the module has for it.
std::unordered_map<std::string, at::Tensor> by_name(const torch::nn::Module& module) {
  std::unordered_map<std::string, at::Tensor> tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) tensors.emplace(item.key(), item.value());
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
  if (module->parameters().empty()) throw InvalidArgument("the module of libtorch has no parameters");
  for (SharedTensor& shared : shared_tensors_of(*module)) {
    variables_.push_back(variable_of(shared));
    names_.push_back(std::move(shared.names));
  }
  replicas_.resize(static_cast<std::size_t>(get_strategy().extended().local_replicas()));
  for (std::size_t number = 0; number < replicas_.size(); ++number) {
    replicas_[number].module = number == 0 ? module : clone_of(*module);
    share(replicas_[number], number);
  }
}

void ModuleVariables::share(Replica& replica, std::size_t number) const {
  const std::unordered_map<std::string, at::Tensor> tensors = by_name(*replica.module);
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const auto components = variables_[i].components();
    const Tensor& component = components[std::min(number, components.size() - 1)];
    std::vector<at::Tensor> shown;
    for (const std::string& name : names_[i]) {
      at::Tensor tensor = tensors.at(name);
      if (std::ranges::any_of(shown, [&](const at::Tensor& each) { return each.is_same(tensor); })) continue;
      tensor.set_data(to_torch(component));
      if (variables_[i].trainable() && tensor.requires_grad()) replica.trained.push_back({tensor, i});
      shown.push_back(std::move(tensor));
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
  const std::vector<Trained>& trained = replicas_[replica_number()].trained;
  std::vector<at::Tensor> inputs;
  inputs.reserve(trained.size());
  for (const Trained& each : trained) inputs.push_back(each.tensor);
  std::vector<at::Tensor> gradients(trained.size());
  if (loss.requires_grad()) gradients = torch::autograd::grad({loss}, inputs, {}, {}, false, true);

  std::vector<GradientAndVariable> pairs;
  pairs.reserve(trained.size());
  for (std::size_t i = 0; i < trained.size();) {
    at::Tensor sum;
    const std::size_t variable = trained[i].variable;
    const at::Tensor& tensor = trained[i].tensor;
    for (; i < trained.size() && trained[i].variable == variable; ++i) {
      if (gradients[i].defined()) sum = sum.defined() ? sum.add(gradients[i]) : gradients[i];
    }
    pairs.push_back(
        {to_cohort(sum.defined() ? sum.contiguous() : at::zeros_like(tensor)), variables_[variable]});
  }
  return pairs;
}

}  // namespace cohort::libtorch
