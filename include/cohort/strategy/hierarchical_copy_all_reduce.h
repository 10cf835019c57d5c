// An all-reduce for devices that come in two groups with fast links inside of each, such as the eight GPUs of
// a DGX-1: each group sums on one of its devices, the two sums meet, and the result goes back the same way.
// Different packs take different devices, so that all links are busy. Needs an even number of devices; other
// numbers are left to ReductionToOneDevice.
#pragma once

#include <cohort/strategy/all_reduce_cross_device_ops.h>

namespace cohort {

class HierarchicalCopyAllReduce final : public AllReduceCrossDeviceOps {
 public:
  /// @throws InvalidArgument for a negative number of packs.
  explicit HierarchicalCopyAllReduce(const AllReduceOptions& options = {})
      : AllReduceCrossDeviceOps(options) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "HierarchicalCopyAllReduce"; }

 private:
  [[nodiscard]] bool fits(std::span<const Device> devices) const override;
  void all_reduce(std::span<const Tensor> parts, int pack) override;
};

}  // namespace cohort
