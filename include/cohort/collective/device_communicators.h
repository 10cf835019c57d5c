// Communicators whose members have their tensors on GPUs. They are made from the communicators of a group on
// the host, which carries CPU tensors and everything that members say to each other, and bring data
// together in one of two ways, the same for all members:
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

  /// One communicator for each of `hosts`, this process's in the host's group, for tensors on the device
  /// of the same number; it owns that one. Collective over all members, called by one thread of each process.
  /// @throws Error on all members when they cannot be made; `hosts` are as they were then.
  [[nodiscard]] virtual std::vector<std::unique_ptr<Communicator>> connect(
      std::vector<std::unique_ptr<Communicator>>& hosts, std::span<const Device> devices) = 0;
};

/// The module that this program is linked with; null when there is none.
[[nodiscard]] DeviceCollectives* linked_device_collectives() noexcept;

/// One communicator for each of `hosts`, for tensors on the device of the same number, through the host.
/// CPU tensors go to the host as they are. A call begins when the device has done what was queued before it,
/// which blocks the caller until then; the result of an `_async` form is in place when its Work has been
/// waited for, or has said that it is done.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_staged_communicators(
    std::vector<std::unique_ptr<Communicator>> hosts, std::span<const Device> devices);

}  // namespace cohort
