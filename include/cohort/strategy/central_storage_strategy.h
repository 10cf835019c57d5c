// One replica per compute device of this process, and one copy of each variable for all of
// them, on the parameter device: for models whose parameters do not fit on every device.
// Replicas read that copy; what they write is aggregated first and then written once.
#pragma once

#include <optional>
#include <vector>

#include <cohort/collective/communication_options.h>
#include <cohort/strategy/strategy.h>

namespace cohort {

class CentralStorageStrategy : public Strategy {
 public:
  /// No compute devices means all GPUs, in programs with GPU support, or else cpu:0. Where no parameter
  /// device is named, it is the only compute device, or cpu:0 when there are several. Values are reduced on
  /// the parameter device.
  /// @throws InvalidArgument when a device is named twice; Unavailable when one does not exist in this
  /// build.
  explicit CentralStorageStrategy(std::vector<Device> compute_devices = {},
                                  std::optional<Device> parameter_device = {},
                                  const CommunicationOptions& options = {});
};

}  // namespace cohort
