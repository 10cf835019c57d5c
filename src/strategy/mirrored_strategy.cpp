#include <cohort/strategy/mirrored_strategy.h>

#include <cohort/base/config.h>
#include <cohort/collective/thread_communicator.h>

namespace cohort {
namespace {

StrategyLayout mirrored_layout(std::vector<Device> devices, const CommunicationOptions& options) {
  if (devices.empty()) devices = cpu_devices(config().cpu_devices());
  const auto replicas = static_cast<int>(devices.size());
  return {.name = "MirroredStrategy",
          .devices = std::move(devices),
          .connect = [=] { return make_thread_communicators(replicas, options); }};
}

}  // namespace

MirroredStrategy::MirroredStrategy(std::vector<Device> devices, const CommunicationOptions& options)
    : Strategy(StrategyExtended::make(mirrored_layout(std::move(devices), options))) {}

}  // namespace cohort
