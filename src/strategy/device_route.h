// The devices of a worker's replicas: which GPUs belong to it, and by which route the tensors on its devices
// are combined with those of others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <cohort/cluster/bootstrap.h>
#include <cohort/collective/communicator.h>
#include <cohort/device/device.h>

#include "collective/device_communicators.h"

namespace cohort {

/// Which GPUs belong to this worker when the program names none: those that the launcher gave to it alone, or
/// its share of the GPUs that all workers of the node see. Empty if no worker sees any GPU. Collective over
/// the workers, in programs that are linked with GPU support; `bootstrap` is null for a process on its own,
/// which takes all that it sees.
/// @throws Unavailable on every worker when some see GPUs and others do not, naming one, or when workers
/// of a node see different but overlapping ones.
[[nodiscard]] std::vector<Device> gpus_of_this_worker(Bootstrap* bootstrap);

/// How the tensors of a strategy's replicas are combined: on the CPUs themselves, or for GPUs by a module
/// (NCCL) or through the host. All workers take the same route. It is chosen once, when the strategy is made,
/// and logged.
class DeviceRoute {
 public:
  /// For replicas on `devices` of this worker; messages name the strategy `who`. Collective over the workers;
  /// `bootstrap` is null for a process on its own.
  /// @throws Unavailable when a device does not exist, or on every worker when NCCL was asked for and cannot
  /// serve the GPUs of one of them; InvalidArgument on every worker when some have GPUs and
  /// others CPUs, naming them.
  DeviceRoute(std::string who, Bootstrap* bootstrap, std::vector<Device> devices,
              CommunicationImplementation implementation);

  /// The communicators of these devices with all replicas, for tensors on them. Collective as the
  /// constructor.
  /// @throws Unavailable on every worker when NCCL was asked for and cannot connect them.
  [[nodiscard]] std::vector<std::unique_ptr<Communicator>> connected(
      std::vector<std::unique_ptr<Communicator>> communicators) const {
    return connected(std::move(communicators), devices_);
  }

  /// A communicator of the workers, for tensors on the first device of each.
  [[nodiscard]] std::unique_ptr<Communicator> connected(std::unique_ptr<Communicator> communicator) const;

 private:
  enum class Way { kCpu, kModule, kHost };

  [[nodiscard]] std::vector<std::unique_ptr<Communicator>> connected(
      std::vector<std::unique_ptr<Communicator>> communicators, std::span<const Device> devices) const;

  std::string who_;
  std::vector<Device> devices_;
  bool must_be_module_;  ///< NCCL was asked for by name
  Way way_ = Way::kCpu;
};

}  // namespace cohort
