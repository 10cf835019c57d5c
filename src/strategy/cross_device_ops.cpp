#include <cohort/strategy/cross_device_ops.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "leaf_arithmetic.h"

namespace cohort {
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

}  // namespace cohort
