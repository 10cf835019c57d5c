// Communicators whose members have their tensors on GPUs. They are made from the communicators of a group on
// the host, which moves CPU tensors and all control data. Tensors on GPUs are moved in one of two ways, the
// same for all members:
//   - by a module for collectives among GPUs, where one is linked in and takes the group (cohort::nccl);
//   - through the host: tensors are copied to staging memory, and the host's group works on that.
// Strategies choose; see device_route.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <cohort/collective/communicator.h>

namespace cohort {

/// What a module for collectives among GPUs implements.
class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;

  /// The library, for the log: `NCCL 2.27.3`.
  [[nodiscard]] virtual std::string name() const = 0;

  /// Why it cannot serve these devices of this process; empty when it can.
  [[nodiscard]] virtual std::string why_not(std::span<const Device> devices) const = 0;

  /// One communicator for each of `hosts`, which are this process's communicators of the group on the host,
  /// for tensors on the device with the same index; each owns its host. Collective over all members, called
  /// by one thread of each process.
  /// @throws Error on all members when they cannot be made; `hosts` are unchanged then.
  [[nodiscard]] virtual std::vector<std::unique_ptr<Communicator>> connect(
      std::vector<std::unique_ptr<Communicator>>& hosts, std::span<const Device> devices) = 0;
};

/// The module that this program is linked with; null when there is none.
[[nodiscard]] DeviceCollectives* linked_device_collectives() noexcept;

/// One communicator for each of `hosts`, for tensors on the device with the same index, through the host. CPU
/// tensors are not copied. A call first blocks its caller until the device has done what was queued before;
/// the result of an `_async` form is in place when its Work has been waited for, or is `done()`.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_staged_communicators(
    std::vector<std::unique_ptr<Communicator>> hosts, std::span<const Device> devices);

}  // namespace cohort
