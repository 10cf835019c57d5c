// The runtime of GPUs: memory from CUDA's stream-ordered pools, copies and kernels, all on the compute
// stream of the device (see stream.h), so that they take effect in the order of the calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <cohort/cuda/stream.h>

#include "device/device_runtime.h"

namespace cohort::cuda {

class Runtime final : public DeviceRuntime {
 public:
  [[nodiscard]] std::vector<Device> devices() const override;
  void require(Device device) const override;
  [[nodiscard]] std::string identity(Device device) const override;

  [[nodiscard]] std::shared_ptr<const Buffer> allocate(std::size_t bytes, Device device) override;
  [[nodiscard]] std::shared_ptr<const Buffer> allocate_staging(std::size_t bytes, Device device) override;

  void copy(const BlockCopy& copy) override;
  void copy_each(std::span<const Tensor> from, std::span<const Tensor> to) override;
  void copy_staged(const BlockCopy& copy) override;

  void fill(const Tensor& tensor, double value) override;
  void cast(const Tensor& from, const Tensor& to) override;
  void combine(ElementOperator op, const Tensor& target, const Tensor& value) override;
  void combine_rows(ElementOperator op, const Tensor& target, const Tensor& indices,
                    const Tensor& values) override;
  void reduce(ElementOperator op, std::span<const Tensor> inputs, const Tensor& output,
              std::size_t divisor) override;
  void update(const OptimizerStep& step, const Tensor& variable, std::span<const Tensor> slots,
              const Tensor& gradient) override;

  void synchronize(Device device) override;
  void drain(Device device) noexcept override;
  [[nodiscard]] int enter(Device device) override;
  void leave(int before) noexcept override;
};

}  // namespace cohort::cuda
