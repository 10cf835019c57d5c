#include "reduced_gradients.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <cohort/torch/tensor.h>

namespace cohort::libtorch {
namespace {

using torch::autograd::variable_list;
using torch::autograd::utils::LambdaPostHook;

/// What owns a node of the graph differs between versions of libtorch.
using Accumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));

}  // namespace

struct ReducedGradients::Parameter {
  std::string name;
  at::Tensor tensor;
  at::Tensor place = {};   ///< of its gradient, in the bucket
  std::size_t number = 0;  ///< among the gradients of the buckets
  Accumulator accumulator = {};
  std::uintptr_t hook = 0;
  bool ready = false;

  /// Of 16 bits, to which a pass adds: the same in float32, so that it is rounded once and not in each pass.
  at::Tensor sum = {};
  at::Tensor rounded = {};           ///< the gradient that was made from `sum`,
  std::int64_t rounded_version = 0;  ///< and how often it had been changed then

  void begin_sum();
  void add_to_sum(const at::Tensor& added);
};

/// Before a pass.
void ReducedGradients::Parameter::begin_sum() {
  const at::Tensor gradient = tensor.grad();
  if (!gradient.defined() || gradient.layout() != at::kStrided) return sum.reset();
  if (sum.defined() && gradient.is_same(rounded) && gradient._version() == rounded_version) return;
  sum = gradient.to(at::kFloat);
}

/// `added`: what a pass has just added to the gradient.
void ReducedGradients::Parameter::add_to_sum(const at::Tensor& added) {
  if (!sum.defined() || !added.defined()) return;
  const at::NoGradGuard no_gradients;
  sum.add_(added);
  rounded = tensor.grad();
  rounded.copy_(sum);
  rounded_version = rounded._version();
}

ReducedGradients::ReducedGradients(std::span<const NamedTensor> parameters,
                                   const DistributedModelOptions& options)
    : options_(options) {
  for (const auto& [name, tensor, more_names] : parameters) {
    if (!tensor.is_cpu())
      throw InvalidArgument("DistributedModel: parameter '{}' is not on a CPU; move the module there", name);
    if (tensor.requires_grad()) parameters_.push_back({name, tensor});
  }
  if (parameters_.empty())
    throw InvalidArgument("DistributedModel: no parameter of the module has a gradient");
}

ReducedGradients::~ReducedGradients() {
  for (const Parameter& parameter : parameters_) {
    if (parameter.hook != 0) parameter.accumulator->del_post_hook(parameter.hook);
  }
}

void ReducedGradients::begin(Communicator& communicator) {
  communicator_ = &communicator;
  // Backward passes reach the last parameters first.
  std::vector<std::size_t> order(parameters_.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  make_buckets(order);
  for (std::size_t index = 0; index < parameters_.size(); ++index) add_hook(index);
}

void ReducedGradients::add_hook(std::size_t index) {
  Parameter& parameter = parameters_[index];
  parameter.accumulator = torch::autograd::impl::grad_accumulator(parameter.tensor);
  parameter.hook = parameter.accumulator->add_post_hook(std::make_unique<LambdaPostHook>(
      [this, index](const variable_list& outputs, const variable_list& added) {
        on_gradient(parameters_[index], added[0]);
        return outputs;
      }));
}

void ReducedGradients::begin_sums() {
  const at::NoGradGuard no_gradients;
  for (Parameter& parameter : parameters_)
    if (is_half(to_cohort(parameter.tensor.scalar_type()))) parameter.begin_sum();
}

void ReducedGradients::on_gradient(Parameter& parameter, const at::Tensor& added) {
  if (mode_ != Mode::kRefused) parameter.add_to_sum(added);
  if (mode_ == Mode::kLocal) return;
  if (mode_ == Mode::kRefused)
    throw WrongContext(
        "loss.backward() reached parameter '{}' of a DistributedModel, whose gradients it would not reduce; "
        "call backward(loss) of the DistributedModel, inside no_sync() for this worker's gradients alone",
        parameter.name);
  observed_.push_back(&parameter);
  announce(parameter);
}

/// Moves the gradient into its bucket, unless it was added up there.
void ReducedGradients::announce(Parameter& parameter) {
  const at::NoGradGuard no_gradients;
  const at::Tensor gradient = parameter.tensor.grad();
  if (!gradient.defined()) {
    parameter.place.zero_();
  } else if (gradient.layout() != at::kStrided) {
    throw Unimplemented("DistributedModel: parameter '{}' has a sparse gradient; make it dense",
                        parameter.name);
  } else if (!gradient.is_alias_of(parameter.place)) {
    parameter.place.copy_(gradient);
  }
  if (gradient.defined()) parameter.tensor.mutable_grad() = parameter.place;
  reached_[static_cast<std::int64_t>(&parameter - parameters_.data())].fill_(gradient.defined() ? 1 : 0);
  parameter.ready = true;
  buckets_->ready(parameter.number);
}

void ReducedGradients::announce_rest() {
  for (Parameter& parameter : parameters_) {
    if (!parameter.ready) announce(parameter);
  }
}

void ReducedGradients::announce_zeros() {
  observed_.clear();
  reached_.zero_();
  for (Parameter& parameter : parameters_) {
    parameter.place.zero_();
    buckets_->ready(parameter.number);
  }
}

void ReducedGradients::finish(double scale, bool show, int member) {
  const at::NoGradGuard no_gradients;
  buckets_->ready(parameters_.size());
  buckets_->wait();
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    Parameter& parameter = parameters_[index];
    parameter.ready = false;
    const bool reached = reached_[static_cast<std::int64_t>(index)].item<double>() > 0;
    if (!show || !reached) continue;  // where nobody has a gradient, there is none
    if (scale != 1) parameter.place.mul_(scale);
    parameter.tensor.mutable_grad() = parameter.place;
  }
  if (!std::exchange(order_known_, true)) make_buckets(observed_order(member));
}

/// That in which the pass of `member` came to its parameters; those it has not reached come last.
std::vector<std::size_t> ReducedGradients::observed_order(int member) const {
  const Tensor shared = Tensor::zeros({static_cast<std::int64_t>(parameters_.size())}, DType::kInt64);
  const auto order = shared.span<std::int64_t>();
  std::vector<bool> listed(parameters_.size());
  std::size_t next = 0;
  const auto list = [&](const Parameter& parameter) {
    const auto index = static_cast<std::size_t>(&parameter - parameters_.data());
    if (!listed[index]) order[next++] = static_cast<std::int64_t>(index);
    listed[index] = true;
  };
  for (const Parameter* parameter : observed_) list(*parameter);
  std::for_each(parameters_.rbegin(), parameters_.rend(), list);
  communicator_->broadcast(shared, member);
  return {order.begin(), order.end()};
}

/// The last of their gradients says which parameters a pass has reached.
void ReducedGradients::make_buckets(std::span<const std::size_t> order) {
  std::vector<TensorSpec> specs;
  for (const std::size_t index : order) {
    parameters_[index].number = specs.size();
    specs.push_back(spec_of(parameters_[index].tensor, parameters_[index].name));
  }
  specs.push_back({{static_cast<std::int64_t>(order.size())}, specs.back().dtype, "reached"});
  buckets_.emplace(*communicator_, specs,
                   GradientBucketsOptions{.bytes_per_bucket = options_.bytes_per_bucket, .op = options_.op});
  for (Parameter& parameter : parameters_) parameter.place = to_torch(buckets_->tensor(parameter.number));
  reached_ = to_torch(buckets_->tensor(order.size()));
}

}  // namespace cohort::libtorch
