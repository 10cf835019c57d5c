#include <cohort/strategy/mirrored_strategy.h>

#include <cohort/base/config.h>
#include <cohort/collective/thread_communicator.h>
#include <cohort/device/device.h>

namespace cohort {
namespace {

StrategyLayout mirrored_layout(std::vector<Device> devices, const CommunicationOptions& options,
                               std::shared_ptr<CrossDeviceOps> cross_device_ops) {
  if (devices.empty()) devices = gpu_devices();
  if (devices.empty()) devices = cpu_devices(config().cpu_devices());
  const auto replicas = static_cast<int>(devices.size());
  return {.name = "MirroredStrategy",
          .devices = std::move(devices),
          .cross_device_ops = std::move(cross_device_ops),
          .connect = [=] { return make_thread_communicators(replicas, options); }};
}

}  // namespace

MirroredStrategy::MirroredStrategy(std::vector<Device> devices, const CommunicationOptions& options,
                                   std::shared_ptr<CrossDeviceOps> cross_device_ops)
    : Strategy(
          StrategyExtended::make(mirrored_layout(std::move(devices), options, std::move(cross_device_ops)))) {
}

}  // namespace cohort
