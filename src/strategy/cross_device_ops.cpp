#include <cohort/strategy/cross_device_ops.h>

#include <algorithm>

#include <fmt/format.h>

#include "leaf_arithmetic.h"

namespace cohort {
namespace {

void require_reducible(const Components& value) {
  if (value.empty()) throw InvalidArgument("cannot reduce a value without components");
  require_alike(value, [](std::size_t component) { return fmt::format("component {}", component); });
}

}  // namespace

Components CrossDeviceOps::reduce(SumOrMean op, const Components& value, const Destinations& destinations,
                                  const CommunicationOptions& options) {
  options.validate();
  require_reducible(value);
  if (value.size() == 1 && workers() == 1) return broadcast(value.front(), destinations);
  return reduce_implementation(op, {value, destinations}, options);
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
  if (batchable) return batch_reduce_implementation(op, requests, options);
  std::vector<Components> results;
  results.reserve(requests.size());
  for (const ReduceRequest& request : requests)
    results.push_back(reduce(op, request.value, request.destinations, options));
  return results;
}

Components CrossDeviceOps::broadcast(const TensorOrSlices& value, const Destinations& destinations) {
  return broadcast_implementation(value, destinations);
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

}  // namespace cohort
