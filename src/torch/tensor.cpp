#include <cohort/torch/tensor.h>

#include <ATen/DLConvertor.h>
#include <ATen/ops/from_blob.h>

#include <memory>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/custom_function.h>

#include <cohort/base/error.h>
#include <cohort/device/dlpack.h>
#include <cohort/strategy/strategy.h>
#include <cohort/torch/collectives.h>

namespace cohort::libtorch {
namespace {

using Pair = std::pair<at::ScalarType, DType>;
constexpr Pair kDTypes[] = {
    {at::kChar, DType::kInt8},         {at::kShort, DType::kInt16},   {at::kInt, DType::kInt32},
    {at::kLong, DType::kInt64},        {at::kByte, DType::kUInt8},    {at::kHalf, DType::kFloat16},
    {at::kBFloat16, DType::kBFloat16}, {at::kFloat, DType::kFloat32}, {at::kDouble, DType::kFloat64},
    {at::kBool, DType::kBool},
};

Shape shape_of(const at::Tensor& tensor) {
  return Shape(std::vector<std::int64_t>(tensor.sizes().begin(), tensor.sizes().end()));
}

}  // namespace

DType to_cohort(at::ScalarType dtype) {
  for (const auto& [theirs, ours] : kDTypes) {
    if (theirs == dtype) return ours;
  }
  throw InvalidArgument("libtorch's dtype {} has no counterpart in Cohort", at::toString(dtype));
}

at::ScalarType to_torch(DType dtype) {
  for (const auto& [theirs, ours] : kDTypes) {
    if (ours == dtype) return theirs;
  }
  throw InvalidArgument("the dtype {} has no counterpart in libtorch; cast the tensor first",
                        to_string(dtype));
}

Tensor to_cohort(const at::Tensor& tensor) {
  if (!tensor.defined()) throw InvalidArgument("to_cohort got an undefined tensor");
  if (tensor.layout() != at::kStrided) throw InvalidArgument("to_cohort got a sparse tensor; make it dense");
  if (!tensor.is_contiguous())
    throw InvalidArgument("to_cohort got a tensor whose strides are not row-major; call contiguous() first");
  const DType dtype = to_cohort(tensor.scalar_type());
  // On GPUs DLPack's rules for queued work hold.
  if (!tensor.is_cpu()) return from_dlpack(at::toDLPack(tensor.detach()));
  auto owner = std::make_shared<at::Tensor>(tensor.detach());
  auto* data = static_cast<std::byte*>(tensor.data_ptr());
  return Tensor::wrap(std::make_shared<const Buffer>(data, tensor.nbytes(), Device(), std::move(owner)), 0,
                      shape_of(tensor), dtype);
}

at::Tensor to_torch(const Tensor& tensor) {
  const at::ScalarType dtype = to_torch(tensor.dtype());
  if (!is_cpu(tensor)) return at::fromDLPack(to_dlpack(tensor));
  const auto extents = tensor.shape().extents();
  return at::from_blob(
      tensor.data(), {extents.data(), extents.size()}, [kept = tensor](void*) {}, at::dtype(dtype));
}

TensorSpec spec_of(const at::Tensor& tensor, std::string name) {
  return {shape_of(tensor), to_cohort(tensor.scalar_type()), std::move(name)};
}

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
