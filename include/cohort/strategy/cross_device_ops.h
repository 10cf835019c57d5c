// CrossDeviceOps reduces the components of a value, one per local replica, to one value on the devices where
// it is wanted. A strategy has one; programs may give it their own: derive from this class, implement
// `reduce_implementation`, and pass it to the strategy. Arguments are checked before they reach it.
//
// Values come as their components: dense or sparse, all alike, in the order of the replicas.
// Results have one component per destination, each in memory of its own. The thread in
// cross-replica context calls these functions, one at a time.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <cohort/collective/communication_options.h>
#include <cohort/strategy/destinations.h>
#include <cohort/strategy/sum_or_mean.h>
#include <cohort/value/tensor_or_slices.h>

namespace cohort {

/// One value: a component per replica, or per destination.
using Components = std::vector<TensorOrSlices>;

struct ReduceRequest {
  Components value;
  Destinations destinations;
};

class CrossDeviceOps {
 public:
  virtual ~CrossDeviceOps() = default;

  /// For messages, for example `ReductionToOneDevice`.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;

  /// The sum or mean of the components. The mean of integers is floating, unless there is only one component.
  /// Rows of slices are concatenated; their mean divides the values.
  /// @throws InvalidArgument for no components, or components that differ in kind, dtype or shape.
  [[nodiscard]] Components reduce(SumOrMean op, const Components& value, const Destinations& destinations,
                                  const CommunicationOptions& options = {});

  /// One result per request, in order.
  /// @throws InvalidArgument as `reduce`.
  [[nodiscard]] std::vector<Components> batch_reduce(SumOrMean op, std::span<const ReduceRequest> requests,
                                                     const CommunicationOptions& options = {});

  /// A copy of `value` for each destination.
  [[nodiscard]] Components broadcast(const TensorOrSlices& value, const Destinations& destinations);

 protected:
  [[nodiscard]] virtual Components reduce_implementation(ReduceOp op, const ReduceRequest& request,
                                                         const CommunicationOptions& options) = 0;

  /// All requests have matching destinations. Unless overridden, they are reduced one after the other.
  [[nodiscard]] virtual std::vector<Components> batch_reduce_implementation(
      ReduceOp op, std::span<const ReduceRequest> requests, const CommunicationOptions& options);

  [[nodiscard]] virtual Components broadcast_implementation(const TensorOrSlices& value,
                                                            const Destinations& destinations);

  /// How many processes contribute to each value.
  [[nodiscard]] virtual int workers() const noexcept { return 1; }
};

}  // namespace cohort
