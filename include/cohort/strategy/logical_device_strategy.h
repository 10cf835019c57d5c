// Replicas that own several devices each, for models that are spread over more than one:
// a replica has logical devices 0 to n-1, and the DeviceAssignment says which devices
// those are. Between replicas it is a MirroredStrategy.
//
//     LogicalDeviceStrategy strategy(DeviceAssignment::build(
//         cpu_topology({2, 2}), {.computation_shape = {1, 2}, .num_replicas = 2}));
//     auto scope = strategy.scope();
//     Variable encoder({.shape = {784, 100}});                     // on logical device 0
//     auto second = strategy.logical_device(1);
//     Variable decoder({.shape = {100, 784}});                     // on logical device 1
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <cohort/collective/communication_options.h>
#include <cohort/strategy/device_assignment.h>
#include <cohort/strategy/strategy.h>
#include <cohort/value/device_scope.h>
#include <cohort/value/variable_creator_scope.h>

namespace cohort {

class LogicalDeviceStrategy : public Strategy {
 public:
  /// @throws Unavailable for a device that this build does not have.
  explicit LogicalDeviceStrategy(DeviceAssignment assignment, const CommunicationOptions& options = {});

  [[nodiscard]] const DeviceAssignment& device_assignment() const& noexcept { return assignment_; }
  [[nodiscard]] DeviceAssignment device_assignment() && { return std::move(assignment_); }

  /// While a Scope lives, variables of this strategy that this thread makes go to one logical device of each
  /// replica, unless they are colocated with others. Inside a replica, that device is the current one.
  class [[nodiscard]] Scope {
   public:
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class LogicalDeviceStrategy;
    Scope(const LogicalDeviceStrategy& strategy, int logical_device, std::optional<int> replica);

    static thread_local const Scope* innermost_;  ///< of this thread, of any strategy

    VariableCreatorScope variables_;
    std::optional<DeviceScope> device_;
    const StrategyExtended* strategy_;
    int logical_device_;
    const Scope* outer_;
  };

  /// @throws InvalidArgument when replicas have no logical device of that number.
  Scope logical_device(int logical_device) const;

  /// The replicas' devices of the innermost `logical_device` scope of this thread; outside, their first ones.
  [[nodiscard]] std::vector<Device> worker_devices() const;

  // Inside a replica, for its own logical devices; all @throws WrongContext elsewhere.

  /// The same value, on that logical device. @throws InvalidArgument when there is none of that number.
  [[nodiscard]] Tensor assign_to_logical_device(const Tensor& tensor, int logical_device) const;

  /// Cuts axis i of the tensor in `partition[i]` equal parts: one tile for each logical device, in row-major
  /// order of the tiles. @throws InvalidArgument unless `partition` has an entry per axis that divides
  /// its extent, and as many tiles as there are logical devices.
  [[nodiscard]] std::vector<Tensor> split_to_logical_devices(const Tensor& tensor,
                                                             std::span<const int> partition) const;

  /// The same value on every logical device.
  [[nodiscard]] std::vector<Tensor> replicate_to_logical_devices(const Tensor& tensor) const;

 private:
  [[nodiscard]] std::span<const Device> own_devices(const char* what) const;

  DeviceAssignment assignment_;
};

}  // namespace cohort
