#include "collective/kernels/reduce_tensors.h"

#include <vector>

#include <cohort/collective/reduction.h>

#include "device/device_runtime.h"

namespace cohort {
namespace {

ElementOperator operator_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean: return ElementOperator::kAdd;
    case ReduceOp::kMin: return ElementOperator::kMinimum;
    case ReduceOp::kMax: return ElementOperator::kMaximum;
    case ReduceOp::kProd: return ElementOperator::kMultiply;
  }
  throw Internal("reduce op {} is not one of Cohort's", static_cast<int>(op));
}

}  // namespace

void reduce_into(ReduceOp op, std::span<const Tensor> inputs, const Tensor& output) {
  std::vector<Tensor> there;
  there.reserve(inputs.size());
  for (const Tensor& input : inputs)
    there.push_back(is_cpu(output) ? input.on_host() : input.to(output.device()));
  if (!is_cpu(output)) {
    const std::size_t divisor = op == ReduceOp::kMean ? inputs.size() : 1;
    runtime_of(output.device()).reduce(operator_of(op), there, output, divisor);
    return;
  }
  std::vector<const std::byte*> addresses;
  addresses.reserve(there.size());
  for (const Tensor& input : there) addresses.push_back(input.data());
  reduce_elements(output.dtype(), op, addresses, output.data(), output.elements());
}

Tensor reduced(ReduceOp op, std::span<const Tensor> inputs) {
  const Tensor& first = inputs.front();
  Tensor result = Tensor::uninitialized(first.shape(), first.dtype(), first.device());
  reduce_into(op, inputs, result);
  return result;
}

void divide(const Tensor& tensor, std::size_t divisor) {
  if (is_cpu(tensor))
    divide_elements(tensor.dtype(), tensor.data(), tensor.elements(), divisor);
  else
    runtime_of(tensor.device()).reduce(ElementOperator::kAdd, {&tensor, 1}, tensor, divisor);
}

}  // namespace cohort
