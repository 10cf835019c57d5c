#include <cohort/collective/reduction.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/collective/reduce_op.h>

#include "device/device_runtime.h"
#include "reduce_tensors.h"

namespace cohort {
namespace {

constexpr std::array kAllOps{ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax,
                             ReduceOp::kProd};

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

std::string_view to_string(ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::kSum: return "sum";
    case ReduceOp::kMean: return "mean";
    case ReduceOp::kMin: return "min";
    case ReduceOp::kMax: return "max";
    case ReduceOp::kProd: return "prod";
  }
  return "unknown";
}

ReduceOp parse_reduce_op(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const ReduceOp op : kAllOps) {
    if (to_string(op) == lower) return op;
  }
  throw InvalidArgument("unknown reduce op '{}'; known: sum, mean, min, max, prod.", name);
}

void detail::throw_not_legal(ReduceOp op, DType dtype) {
  if (dtype == DType::kBool) {
    throw InvalidArgument(
        "{} of bool is not defined; use min (all true), max (any true) or cast to an integer", to_string(op));
  }
  throw InvalidArgument("the mean of {} is a fraction; cast to float32 or float64 first, or use sum",
                        to_string(dtype));
}

bool depends_on_order(ReduceOp op, DType dtype) noexcept {
  return is_floating(dtype) && op != ReduceOp::kMin && op != ReduceOp::kMax;
}

// Elements in the host's memory.

ReductionKernel reduction_kernel(DType dtype, ReduceOp op) {
  const ReductionKernel kernel = best_reduction(dtype, op);
  if (kernel == nullptr)
    throw Internal("{} of {} passed the check of legal operators", to_string(op), to_string(dtype));
  return kernel;
}

void reduce_elements(DType dtype, ReduceOp op, std::span<const std::byte* const> inputs,
                     std::span<std::byte* const> outputs, std::size_t elements, const ReductionHints& hints) {
  reduction_kernel(dtype, op)(inputs, outputs, elements, hints);
}

void reduce_elements(DType dtype, ReduceOp op, std::span<const std::byte* const> inputs, std::byte* output,
                     std::size_t elements) {
  reduce_elements(dtype, op, inputs, std::span(&output, 1), elements);
}

void divide_elements(DType dtype, std::byte* data, std::size_t elements, std::size_t divisor) {
  const DivisionKernel kernel = best_division(dtype);
  if (kernel == nullptr) throw Internal("{} is divided only in the MEAN of its sum", to_string(dtype));
  kernel(data, elements, divisor);
}

// Tensors, wherever they lie.

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
