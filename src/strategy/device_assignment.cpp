#include <cohort/strategy/device_assignment.h>

#include <functional>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

int product(const std::vector<int>& extents) {
  return std::accumulate(extents.begin(), extents.end(), 1, std::multiplies());
}

void require_extents(const char* what, const std::vector<int>& extents) {
  for (const int extent : extents) {
    if (extent < 1) throw InvalidArgument("{} {} has an extent below 1", what, extents);
  }
}

/// The coordinates of point `number` of a mesh; the last axis varies fastest.
std::vector<int> point_of(int number, const std::vector<int>& mesh_shape) {
  std::vector<int> point(mesh_shape.size());
  for (std::size_t axis = mesh_shape.size(); axis-- > 0; number /= mesh_shape[axis])
    point[axis] = number % mesh_shape[axis];
  return point;
}

int number_of(const std::vector<int>& point, const std::vector<int>& mesh_shape) {
  int number = 0;
  for (std::size_t axis = 0; axis < mesh_shape.size(); ++axis)
    number = number * mesh_shape[axis] + point[axis];
  return number;
}

std::vector<int> or_ones(const std::vector<int>& extents, std::size_t axes, const char* what) {
  if (extents.empty()) return std::vector<int>(axes, 1);
  if (extents.size() != axes)
    throw InvalidArgument("{} {} has {} axes, but the mesh has {}", what, extents, extents.size(), axes);
  require_extents(what, extents);
  return extents;
}

void require_complete(const DeviceTopology& topology) {
  if (topology.mesh_shape.empty()) throw InvalidArgument("a topology needs a mesh of at least one axis");
  require_extents("mesh_shape", topology.mesh_shape);
  if (static_cast<int>(topology.devices.size()) == product(topology.mesh_shape)) return;
  throw InvalidArgument("a mesh of shape {} has {} points, but the topology names {} devices",
                        topology.mesh_shape, product(topology.mesh_shape), topology.devices.size());
}

}  // namespace

DeviceTopology cpu_topology(std::vector<int> mesh_shape) {
  require_extents("mesh_shape", mesh_shape);
  std::vector<Device> devices = cpu_devices(product(mesh_shape));
  return {std::move(mesh_shape), std::move(devices)};
}

DeviceAssignment::DeviceAssignment(std::vector<std::vector<Device>> devices) : devices_(std::move(devices)) {
  if (devices_.empty()) throw InvalidArgument("a device assignment needs at least one replica");
  std::set<Device> seen;
  for (std::size_t replica = 0; replica < devices_.size(); ++replica) {
    const std::vector<Device>& row = devices_[replica];
    if (row.empty())
      throw InvalidArgument("replica {} has no logical devices; it needs at least one", replica);
    if (row.size() != devices_.front().size()) {
      throw InvalidArgument("replica {} has {} logical devices, replica 0 has {}; all need the same number",
                            replica, row.size(), devices_.front().size());
    }
    for (const Device device : row) {
      if (!seen.insert(device).second)
        throw InvalidArgument("device {} is assigned twice; each logical device needs its own",
                              to_string(device));
    }
  }
}

DeviceAssignment DeviceAssignment::build(const DeviceTopology& topology,
                                         const DeviceAssignmentOptions& options) {
  require_complete(topology);
  const std::vector<int>& mesh = topology.mesh_shape;
  const std::vector<int> shape = or_ones(options.computation_shape, mesh.size(), "computation_shape");
  const std::vector<int> stride = or_ones(options.computation_stride, mesh.size(), "computation_stride");

  // The mesh consists of tiles in which `stride` replicas per axis interlock.
  std::vector<int> tile;
  std::vector<int> tiles;
  for (std::size_t axis = 0; axis < mesh.size(); ++axis) {
    tile.push_back(shape[axis] * stride[axis]);
    tiles.push_back(mesh[axis] / tile[axis]);
  }
  const int room = product(tiles) * product(stride);
  if (options.num_replicas < 1 || options.num_replicas > room) {
    throw InvalidArgument(
        "{} replicas of shape {} and stride {} were asked for, but a mesh of shape {} has room for {}",
        options.num_replicas, shape, stride, mesh, room);
  }
  std::vector<std::vector<Device>> rows;
  for (int replica = 0; replica < options.num_replicas; ++replica) {
    const std::vector<int> tile_at = point_of(replica / product(stride), tiles);
    const std::vector<int> offset = point_of(replica % product(stride), stride);
    std::vector<Device>& row = rows.emplace_back();
    for (int logical = 0; logical < product(shape); ++logical) {
      std::vector<int> point = point_of(logical, shape);
      for (std::size_t axis = 0; axis < mesh.size(); ++axis)
        point[axis] = tile_at[axis] * tile[axis] + offset[axis] + point[axis] * stride[axis];
      row.push_back(topology.devices[static_cast<std::size_t>(number_of(point, mesh))]);
    }
  }
  return DeviceAssignment(std::move(rows));
}

Device DeviceAssignment::device(int replica, int logical_device) const {
  const std::span<const Device> row = devices_of(replica);
  if (logical_device < 0 || logical_device >= logical_devices_per_replica()) {
    throw InvalidArgument("there is no logical device {}: each replica has {}, numbered from 0",
                          logical_device, logical_devices_per_replica());
  }
  return row[static_cast<std::size_t>(logical_device)];
}

std::span<const Device> DeviceAssignment::devices_of(int replica) const& {
  if (replica < 0 || replica >= num_replicas())
    throw InvalidArgument("there is no replica {}: the assignment has {}, numbered from 0", replica,
                          num_replicas());
  return devices_[static_cast<std::size_t>(replica)];
}

std::vector<Device> DeviceAssignment::column(int logical_device) const {
  std::vector<Device> devices;
  devices.reserve(devices_.size());
  for (int replica = 0; replica < num_replicas(); ++replica)
    devices.push_back(device(replica, logical_device));
  return devices;
}

}  // namespace cohort
