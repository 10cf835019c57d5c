// Everything is copied to one device, reduced there, and copied to the destinations. Slow
// between GPUs, but it takes every dtype, mixture of devices and operator.
#pragma once

#include <functional>
#include <optional>

#include <cohort/strategy/cross_device_ops.h>

namespace cohort {

/// Makes one tensor of several that have the same dtype and shape, for example their sum.
using AccumulationFunction = std::function<Tensor(std::span<const Tensor>)>;

struct ReductionToOneDeviceOptions {
  std::optional<Device> reduce_to_device = {};  ///< unset: the first destination

  /// Replaces the sum of dense values; the MEAN divides its result. Unset: the sum.
  AccumulationFunction accumulation_function = {};
};

class ReductionToOneDevice final : public CrossDeviceOps {
 public:
  explicit ReductionToOneDevice(ReductionToOneDeviceOptions options = {});

  [[nodiscard]] std::string_view name() const noexcept override { return "ReductionToOneDevice"; }

 private:
  [[nodiscard]] Components reduce_implementation(ReduceOp op, const ReduceRequest& request,
                                                 const CommunicationOptions& options) override;
  [[nodiscard]] TensorOrSlices accumulated(ReduceOp op, std::span<const TensorOrSlices> components) const;

  ReductionToOneDeviceOptions options_;
};

}  // namespace cohort
