#include <cohort/strategy/reduction_to_one_device.h>

#include <utility>

#include "leaf_arithmetic.h"

namespace cohort {
namespace {

TensorOrSlices moved_to(const TensorOrSlices& leaf, Device device) {
  return values_of(leaf).device() == device ? leaf : copy_to(leaf, device);
}

}  // namespace

ReductionToOneDevice::ReductionToOneDevice(ReductionToOneDeviceOptions options)
    : options_(std::move(options)) {}

Components ReductionToOneDevice::reduce_implementation(ReduceOp op, const ReduceRequest& request,
                                                       const CommunicationOptions& /*options*/) {
  const Device device = options_.reduce_to_device.value_or(request.destinations.devices().front());
  std::vector<TensorOrSlices> components;
  components.reserve(request.value.size());
  for (const TensorOrSlices& component : request.value)
    components.push_back(moved_to(prepared(op, component), device));
  return placed(accumulated(op, components), request.destinations);
}

TensorOrSlices ReductionToOneDevice::accumulated(ReduceOp op,
                                                 std::span<const TensorOrSlices> components) const {
  if (!options_.accumulation_function || is_sparse(components.front())) return reduced(op, components);
  std::vector<Tensor> tensors;
  tensors.reserve(components.size());
  for (const TensorOrSlices& component : components) tensors.push_back(std::get<Tensor>(component));
  // The function may return one of its arguments, which are the caller's.
  TensorOrSlices result = options_.accumulation_function(tensors).clone();
  if (op == ReduceOp::kMean) divide(result, components.size());
  return result;
}

}  // namespace cohort
