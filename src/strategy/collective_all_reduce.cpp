#include <cohort/strategy/collective_all_reduce.h>

#include <utility>

#include <cohort/collective/communication_scope.h>

#include "leaf_arithmetic.h"
#include "leaf_reducer.h"

namespace cohort {
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
