#include <cohort/strategy/central_storage_strategy.h>

#include <utility>

#include <cohort/collective/thread_communicator.h>
#include <cohort/device/device.h>
#include <cohort/strategy/reduction_to_one_device.h>

namespace cohort {
namespace {

StrategyLayout central_layout(std::vector<Device> compute_devices, std::optional<Device> parameter_device,
                              const CommunicationOptions& options) {
  if (compute_devices.empty()) compute_devices = gpu_devices();
  if (compute_devices.empty()) compute_devices = cpu_devices(1);
  const bool alone = compute_devices.size() == 1;
  const Device parameters = parameter_device.value_or(alone ? compute_devices.front() : Device());
  const auto replicas = static_cast<int>(compute_devices.size());
  return {.name = "CentralStorageStrategy",
          .devices = std::move(compute_devices),
          .parameter_device = parameters,
          .cross_device_ops = std::make_shared<ReductionToOneDevice>(
              ReductionToOneDeviceOptions{.reduce_to_device = parameters}),
          .connect = [=] { return make_thread_communicators(replicas, options); }};
}

}  // namespace

CentralStorageStrategy::CentralStorageStrategy(std::vector<Device> compute_devices,
                                               std::optional<Device> parameter_device,
                                               const CommunicationOptions& options)
    : Strategy(
          StrategyExtended::make(central_layout(std::move(compute_devices), parameter_device, options))) {}

}  // namespace cohort
