// One replica per device of this process. The replicas run at the same time, each on
// the thread of its device, and every variable has a component on each of them.
#pragma once

#include <memory>
#include <vector>

#include <cohort/collective/communication_options.h>
#include <cohort/strategy/strategy.h>

namespace cohort {

class MirroredStrategy : public Strategy {
 public:
  /// No devices means all of them: every GPU that this process sees, in programs with GPU support; where
  /// there is none, cpu:0 to cpu:K-1 with K from COHORT_CPU_DEVICES. `cross_device_ops` reduces values, in
  /// replicas as well; null: collectives among the devices.
  /// @throws InvalidArgument when a device is named twice, or GPUs and CPUs are mixed; Unavailable when
  /// one does not exist.
  explicit MirroredStrategy(std::vector<Device> devices = {}, const CommunicationOptions& options = {},
                            std::shared_ptr<CrossDeviceOps> cross_device_ops = nullptr);
};

}  // namespace cohort
