// What the all-reduces among the devices of one process have in common: each device's dense tensors of one
// dtype are laid side by side and cut into packs, and the packs are summed on all devices at once. Everything
// else is left to ReductionToOneDevice: sparse values, values whose destinations are not their own devices,
// and devices that the algorithm cannot take.
#pragma once

#include <cohort/strategy/cross_device_ops.h>
#include <cohort/strategy/reduction_to_one_device.h>

namespace cohort {

struct AllReduceOptions {
  /// The number of packs that the tensors of a batch are cut into. Packs have equally many elements, wherever
  /// tensors begin and end; the last one takes the remainder. 0: each tensor is a pack.
  int num_packs = 1;
};

class AllReduceCrossDeviceOps : public CrossDeviceOps {
 protected:
  /// @throws InvalidArgument for a negative number of packs.
  explicit AllReduceCrossDeviceOps(const AllReduceOptions& options);

  /// Whether `all_reduce` takes these devices.
  [[nodiscard]] virtual bool fits(std::span<const Device> devices) const = 0;

  /// `parts` are pack number `pack`, one tensor per device: each becomes the sum of all of them.
  virtual void all_reduce(std::span<const Tensor> parts, int pack) = 0;

 private:
  [[nodiscard]] Components reduce_implementation(ReduceOp op, const ReduceRequest& request,
                                                 const CommunicationOptions& options) final;
  [[nodiscard]] std::vector<Components> batch_reduce_implementation(
      ReduceOp op, std::span<const ReduceRequest> requests, const CommunicationOptions& options) final;
  [[nodiscard]] bool takes(const ReduceRequest& request) const;
  [[nodiscard]] std::vector<Components> reduced_together(ReduceOp op, std::span<const ReduceRequest> requests,
                                                         std::span<const std::size_t> chosen);

  int num_packs_;
  ReductionToOneDevice fallback_;
};

}  // namespace cohort
