#include "collectives.h"

#include <ATen/DLConvertor.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cohort/device/dlpack.h>
#include <cohort/strategy/strategy.h>

namespace libtorch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

cohort::ReplicaContext& replica() {
  cohort::ReplicaContext* const current = cohort::get_replica_context();
  if (current != nullptr) return *current;
  throw cohort::WrongContext("collectives of libtorch's tensors are for replicas; call them within run()");
}

// Both directions share the memory.
cohort::Tensor to_cohort(const torch::Tensor& tensor) {
  return cohort::from_dlpack(at::toDLPack(tensor.detach().contiguous()));
}
torch::Tensor to_torch(const cohort::Tensor& tensor) { return at::fromDLPack(cohort::to_dlpack(tensor)); }

struct AllReduce : torch::autograd::Function<AllReduce> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& value, cohort::ReduceOp op) {
    context->saved_data["op"] = static_cast<std::int64_t>(op);
    return to_torch(replica().all_reduce(op, to_cohort(value)));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto op = static_cast<cohort::ReduceOp>(context->saved_data["op"].toInt());
    return {to_torch(replica().all_reduce(op, to_cohort(gradients[0]))), {}};
  }
};

struct AllGather : torch::autograd::Function<AllGather> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& value, int axis) {
    context->save_for_backward({value});
    context->saved_data["axis"] = axis;
    return to_torch(replica().all_gather(to_cohort(value), axis));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const cohort::Tensor value = to_cohort(context->get_saved_variables()[0]);
    const auto axis = static_cast<int>(context->saved_data["axis"].toInt());
    return {to_torch(replica().reduce_scatter(cohort::ReduceOp::kSum, to_cohort(gradients[0]), value, axis)),
            {}};
  }
};

}  // namespace

torch::Tensor all_reduce(cohort::ReduceOp op, const torch::Tensor& value) {
  return AllReduce::apply(value, op);
}

torch::Tensor all_gather(const torch::Tensor& value, int axis) { return AllGather::apply(value, axis); }

}  // namespace libtorch
