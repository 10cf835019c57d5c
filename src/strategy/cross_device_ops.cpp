#include <cohort/strategy/cross_device_ops.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/collective/communication_scope.h>
#include <cohort/strategy/collective_all_reduce.h>
#include <cohort/strategy/destinations.h>
#include <cohort/strategy/reduction_to_one_device.h>
#include <cohort/strategy/sum_or_mean.h>

#include "leaf_reduction.h"

namespace cohort {

SumOrMean::SumOrMean(ReduceOp op) : op_(op) {
  if (op == ReduceOp::kSum || op == ReduceOp::kMean) return;
  throw InvalidArgument("strategies reduce by sum or mean, not {}; use a Communicator for the others",
                        to_string(op));
}

SumOrMean::SumOrMean(std::string_view name) : SumOrMean(parse_reduce_op(name)) {}

namespace {

Device parsed(std::string_view name) {
  if (name.empty()) throw InvalidArgument("destinations cannot be empty; name a device, for example cpu:0");
  return Device::parse(name);
}

}  // namespace

Destinations::Destinations(std::string_view name) : devices_{parsed(name)} {}

Destinations::Destinations(const Variable& variable) {
  for (const Tensor& component : variable.components()) devices_.push_back(component.device());
}

void Destinations::add(std::span<const TensorOrSlices> component) {
  if (component.empty()) throw InvalidArgument("destinations cannot be empty; a component has no tensors");
  devices_.push_back(values_of(component.front()).device());
}

void Destinations::require_devices() const {
  if (devices_.empty())
    throw InvalidArgument(
        "destinations cannot be empty; the value has no components, or the list no devices");
}

bool Destinations::matches(const Destinations& other) const {
  return std::ranges::is_permutation(devices_, other.devices_);
}

namespace {

void require_reducible(const Components& value) {
  if (value.empty()) throw InvalidArgument("cannot reduce a value without components");
  require_alike(value, [](std::size_t component) { return fmt::format("component {}", component); });
}

/// Checks the number of components that a program's own operations return.
Components one_per_destination(Components result, std::string_view name, const Destinations& destinations) {
  const std::size_t expected = destinations.devices().size();
  if (result.size() == expected) return result;
  throw InvalidArgument("{} returned {} components of a value for {} destinations; return one for each", name,
                        result.size(), expected);
}

}  // namespace

Components CrossDeviceOps::reduce(SumOrMean op, const Components& value, const Destinations& destinations,
                                  const CommunicationOptions& options) {
  options.validate();
  require_reducible(value);
  if (value.size() == 1 && workers() == 1) return broadcast(value.front(), destinations);
  return one_per_destination(reduce_implementation(op, {value, destinations}, options), name(), destinations);
}

std::vector<Components> CrossDeviceOps::batch_reduce(SumOrMean op, std::span<const ReduceRequest> requests,
                                                     const CommunicationOptions& options) {
  options.validate();
  for (const ReduceRequest& request : requests) require_reducible(request.value);
  const bool batchable = std::ranges::all_of(requests, [&](const ReduceRequest& request) {
    return request.value.size() * static_cast<std::size_t>(workers()) > 1 &&
           request.value.size() == requests.front().value.size() &&
           request.destinations.matches(requests.front().destinations);
  });
  std::vector<Components> results;
  if (batchable) {
    results = batch_reduce_implementation(op, requests, options);
    if (results.size() != requests.size()) {
      throw InvalidArgument("{} returned {} results of a batch of {}; return one for each request", name(),
                            results.size(), requests.size());
    }
    for (std::size_t i = 0; i < results.size(); ++i)
      results[i] = one_per_destination(std::move(results[i]), name(), requests[i].destinations);
    return results;
  }
  results.reserve(requests.size());
  for (const ReduceRequest& request : requests)
    results.push_back(reduce(op, request.value, request.destinations, options));
  return results;
}

Components CrossDeviceOps::broadcast(const TensorOrSlices& value, const Destinations& destinations) {
  return one_per_destination(broadcast_implementation(value, destinations), name(), destinations);
}

std::vector<Components> CrossDeviceOps::batch_reduce_implementation(ReduceOp op,
                                                                    std::span<const ReduceRequest> requests,
                                                                    const CommunicationOptions& options) {
  std::vector<Components> results;
  results.reserve(requests.size());
  for (const ReduceRequest& request : requests)
    results.push_back(reduce_implementation(op, request, options));
  return results;
}

Components CrossDeviceOps::broadcast_implementation(const TensorOrSlices& value,
                                                    const Destinations& destinations) {
  Components copies;
  copies.reserve(destinations.devices().size());
  for (const Device device : destinations.devices()) copies.push_back(copy_to(value, device));
  return copies;
}

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

namespace {

/// What this process contributes to one value.
TensorOrSlices own_part(ReduceOp op, const Components& value) {
  std::vector<TensorOrSlices> components;
  components.reserve(value.size());
  for (const TensorOrSlices& component : value) components.push_back(prepared(op, component));
  return components.size() == 1 ? components.front() : reduced(op, components);
}

}  // namespace

CollectiveAllReduce::CollectiveAllReduce() = default;
CollectiveAllReduce::CollectiveAllReduce(Communicator& workers)
    : workers_(&workers), reducer_(std::make_unique<LeafReducer>()) {}
CollectiveAllReduce::~CollectiveAllReduce() = default;

Components CollectiveAllReduce::reduce_implementation(ReduceOp op, const ReduceRequest& request,
                                                      const CommunicationOptions& options) {
  return std::move(batch_reduce_implementation(op, {&request, 1}, options).front());
}

std::vector<Components> CollectiveAllReduce::batch_reduce_implementation(
    ReduceOp op, std::span<const ReduceRequest> requests, const CommunicationOptions& options) {
  // Workers have equally many components, so the mean of the workers' means is the mean over all.
  std::vector<TensorOrSlices> values;
  values.reserve(requests.size());
  for (const ReduceRequest& request : requests) values.push_back(own_part(op, request.value));
  if (workers() > 1) {
    const CommunicationScope scope(*workers_, options);
    values = reducer_->all_reduced(*workers_, values, op);
  }
  std::vector<Components> results;
  results.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i)
    results.push_back(placed(values[i], requests[i].destinations));
  return results;
}

}  // namespace cohort
