// The all-reduce of NCCL, for CUDA devices. This build has none, so every value goes by
// ReductionToOneDevice.
#pragma once

#include <cohort/strategy/all_reduce_cross_device_ops.h>

namespace cohort {

class NcclAllReduce final : public AllReduceCrossDeviceOps {
 public:
  /// @throws InvalidArgument for a negative number of packs.
  explicit NcclAllReduce(const AllReduceOptions& options = {}) : AllReduceCrossDeviceOps(options) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "NcclAllReduce"; }

 private:
  [[nodiscard]] bool fits(std::span<const Device> devices) const override;
  void all_reduce(std::span<const Tensor> parts, int pack) const override;
};

}  // namespace cohort
