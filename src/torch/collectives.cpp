#include <cohort/torch/collectives.h>

#include <torch/csrc/autograd/custom_function.h>

#include <cohort/strategy/strategy.h>
#include <cohort/torch/tensor.h>

namespace cohort::libtorch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ReplicaContext& replica() {
  ReplicaContext* const current = get_replica_context();
  if (current != nullptr) return *current;
  throw WrongContext("collectives of libtorch's tensors are for replicas; call them within run()");
}

/// Gradients may have any strides.
Tensor shared(const at::Tensor& tensor) { return to_cohort(tensor.contiguous()); }

struct AllReduce : torch::autograd::Function<AllReduce> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& value, ReduceOp op) {
    context->saved_data["op"] = static_cast<std::int64_t>(op);
    return to_torch(replica().all_reduce(op, shared(value)));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto op = static_cast<ReduceOp>(context->saved_data["op"].toInt());
    return {to_torch(replica().all_reduce(op, shared(gradients[0]))), {}};
  }
};

struct AllGather : torch::autograd::Function<AllGather> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& value, int axis) {
    context->save_for_backward({value});
    context->saved_data["axis"] = axis;
    return to_torch(replica().all_gather(shared(value), axis));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor value = shared(context->get_saved_variables()[0]);
    const auto axis = static_cast<int>(context->saved_data["axis"].toInt());
    return {to_torch(replica().reduce_scatter(ReduceOp::kSum, shared(gradients[0]), value, axis)), {}};
  }
};

}  // namespace

at::Tensor all_reduce(ReduceOp op, const at::Tensor& value) { return AllReduce::apply(value, op); }

at::Tensor all_gather(const at::Tensor& value, int axis) { return AllGather::apply(value, axis); }

}  // namespace cohort::libtorch
