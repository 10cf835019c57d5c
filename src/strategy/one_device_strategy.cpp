#include <cohort/strategy/one_device_strategy.h>

#include <cohort/collective/thread_communicator.h>

namespace cohort {

OneDeviceStrategy::OneDeviceStrategy(Device device)
    : Strategy(StrategyExtended::make(
          {.name = "OneDeviceStrategy", .devices = {device}, .parameter_device = device, .connect = [] {
             return make_thread_communicators(1);
           }})) {}

}  // namespace cohort
