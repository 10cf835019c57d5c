// A DeviceAssignment says which devices each replica owns, for replicas that own several (see
// logical_device_strategy.h): a table with a row per replica and a column per logical device. It is given
// explicitly, or cut out of a mesh of devices.
#pragma once

#include <span>
#include <vector>

#include <cohort/device/device.h>

namespace cohort {

/// Devices arranged as a mesh, for example 2 x 4; the last axis varies fastest.
struct DeviceTopology {
  std::vector<int> mesh_shape = {};
  std::vector<Device> devices = {};  ///< as many as the mesh has points
};

/// The topology of `cpu:0`, `cpu:1`, and so on. @throws InvalidArgument for an empty or negative extent.
[[nodiscard]] DeviceTopology cpu_topology(std::vector<int> mesh_shape);

/// How replicas are cut out of a mesh; lists have an entry per axis of the mesh.
struct DeviceAssignmentOptions {
  std::vector<int> computation_shape = {};   ///< the block of a replica; empty: one device
  std::vector<int> computation_stride = {};  ///< the distance of neighbours within it; empty: 1
  int num_replicas = 1;
};

class DeviceAssignment {
 public:
  /// `devices[replica][logical device]`. @throws InvalidArgument for no replicas, rows that are empty or of
  /// different length, or a device that is named twice.
  explicit DeviceAssignment(std::vector<std::vector<Device>> devices);

  /// Replicas take blocks of the mesh in the order of its points. With a stride, the gaps of a block belong
  /// to the next replicas. @throws InvalidArgument for lists that do not fit the mesh, extents below 1,
  /// blocks larger than the mesh, or more replicas than there is room for.
  [[nodiscard]] static DeviceAssignment build(const DeviceTopology& topology,
                                              const DeviceAssignmentOptions& options = {});

  [[nodiscard]] int num_replicas() const noexcept { return static_cast<int>(devices_.size()); }
  [[nodiscard]] int logical_devices_per_replica() const noexcept {
    return static_cast<int>(devices_.front().size());
  }

  /// @throws InvalidArgument when either is out of range.
  [[nodiscard]] Device device(int replica, int logical_device) const;

  /// All logical devices of a replica.
  [[nodiscard]] std::span<const Device> devices_of(int replica) const&;
  // NOLINTNEXTLINE(readability-make-member-function-const): of temporaries, which a const one would not be
  [[nodiscard]] std::vector<Device> devices_of(int replica) && {
    return {devices_of(replica).begin(), devices_of(replica).end()};
  }

  /// One logical device of every replica.
  [[nodiscard]] std::vector<Device> column(int logical_device) const;

 private:
  std::vector<std::vector<Device>> devices_;
};

}  // namespace cohort
