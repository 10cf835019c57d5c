// The all-reduce of NCCL, for CUDA devices in programs that are linked with cohort::nccl. Elsewhere every
// value is left to ReductionToOneDevice.
#pragma once

#include <memory>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/strategy/all_reduce_cross_device_ops.h>

namespace cohort {

class NcclAllReduce final : public AllReduceCrossDeviceOps {
 public:
  /// @throws InvalidArgument for a negative number of packs.
  explicit NcclAllReduce(const AllReduceOptions& options = {});
  ~NcclAllReduce() override;

  NcclAllReduce(const NcclAllReduce&) = delete;
  NcclAllReduce& operator=(const NcclAllReduce&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override { return "NcclAllReduce"; }

 private:
  [[nodiscard]] bool fits(std::span<const Device> devices) const override;
  void all_reduce(std::span<const Tensor> parts, int pack) override;
  /// Makes sure that there are communicators for the devices of these tensors.
  void connect(std::span<const Tensor> parts);

  std::vector<Device> devices_;
  std::vector<std::unique_ptr<Communicator>> communicators_;  ///< by device
};

}  // namespace cohort
