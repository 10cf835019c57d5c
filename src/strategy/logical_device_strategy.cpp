#include <cohort/strategy/logical_device_strategy.h>

#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/collective/thread_communicator.h>
#include <cohort/strategy/device_assignment.h>

#include "device/device_runtime.h"

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

namespace {

constexpr const char* kLogicalDeviceName = "LogicalDeviceStrategy";

StrategyLayout layout_of(const DeviceAssignment& assignment, const CommunicationOptions& options) {
  const int replicas = assignment.num_replicas();
  return {.name = kLogicalDeviceName, .devices = assignment.column(0), .connect = [=] {
            return make_thread_communicators(replicas, options);
          }};
}

void require_partition(const Tensor& tensor, std::span<const int> partition, std::size_t devices) {
  if (static_cast<int>(partition.size()) != tensor.shape().rank()) {
    throw InvalidArgument("split_to_logical_devices: {} cannot be cut by {}, which has {} axes",
                          describe(tensor), partition, partition.size());
  }
  for (std::size_t axis = 0; axis < partition.size(); ++axis) {
    if (partition[axis] > 0 && tensor.shape()[static_cast<int>(axis)] % partition[axis] == 0) continue;
    throw InvalidArgument("split_to_logical_devices: axis {} of {} cannot be cut in {} equal parts", axis,
                          describe(tensor), partition[axis]);
  }
  const int tiles = std::accumulate(partition.begin(), partition.end(), 1, std::multiplies());
  if (static_cast<std::size_t>(tiles) == devices) return;
  throw InvalidArgument(
      "split_to_logical_devices: {} makes {} tiles, but each replica has {} logical devices", partition,
      tiles, devices);
}

/// The position of tile `number` along each axis.
std::vector<int> tile_of(int number, std::span<const int> partition) {
  std::vector<int> tile(partition.size());
  for (std::size_t axis = partition.size(); axis-- > 0; number /= partition[axis])
    tile[axis] = number % partition[axis];
  return tile;
}

/// Copies one tile, row by row of its last axis.
void copy_tile(const Tensor& from, std::span<const int> tile, const Tensor& to) {
  const std::size_t size = size_of(from.dtype());
  const auto whole = from.shape().extents();
  const auto part = to.shape().extents();
  const std::size_t row = part.empty() ? 1 : static_cast<std::size_t>(part.back());
  const std::size_t rows = row == 0 ? 0 : to.elements() / row;
  for (std::size_t number = 0; number < rows; ++number) {
    std::size_t offset = 0;
    std::size_t rest = number;
    std::size_t stride = 1;
    for (std::size_t axis = part.size(); axis-- > 0;) {
      const auto extent = static_cast<std::size_t>(part[axis]);
      const bool last = axis + 1 == part.size();
      const std::size_t index = last ? 0 : rest % extent;
      if (!last) rest /= extent;
      offset += (static_cast<std::size_t>(tile[axis]) * extent + index) * stride;
      stride *= static_cast<std::size_t>(whole[axis]);
    }
    copy_blocks({.to = to.data() + number * row * size,
                 .to_device = to.device(),
                 .to_pitch = row * size,
                 .from = from.data() + offset * size,
                 .from_device = from.device(),
                 .from_pitch = row * size,
                 .width = row * size});
  }
}

}  // namespace

LogicalDeviceStrategy::LogicalDeviceStrategy(DeviceAssignment assignment, const CommunicationOptions& options)
    : Strategy(StrategyExtended::make(layout_of(assignment, options))), assignment_(std::move(assignment)) {}

thread_local const LogicalDeviceStrategy::Scope* LogicalDeviceStrategy::Scope::innermost_ = nullptr;

LogicalDeviceStrategy::Scope::Scope(const LogicalDeviceStrategy& strategy, int logical_device,
                                    std::optional<int> replica)
    : variables_([owner = &strategy.extended(), devices = strategy.assignment_.column(logical_device)](
                     const NextCreator& next, VariableOptions options) {
        // An inner scope comes first.
        if (options.devices.empty() && current_mode().strategy == owner) options.devices = devices;
        return next(std::move(options));
      }),
      strategy_(&strategy.extended()),
      logical_device_(logical_device),
      outer_(std::exchange(innermost_, this)) {
  if (replica) device_.emplace(strategy.assignment_.device(*replica, logical_device));
}

LogicalDeviceStrategy::Scope::~Scope() { innermost_ = outer_; }

LogicalDeviceStrategy::Scope LogicalDeviceStrategy::logical_device(int logical_device) const {
  const ContextMode& mode = current_mode();
  const bool in_replica = mode.kind == ContextKind::kReplica && mode.strategy == &extended();
  return {*this, logical_device, in_replica ? std::optional(mode.local_replica) : std::nullopt};
}

std::vector<Device> LogicalDeviceStrategy::worker_devices() const {
  const Scope* scope = Scope::innermost_;
  while (scope != nullptr && scope->strategy_ != &extended()) scope = scope->outer_;
  return assignment_.column(scope == nullptr ? 0 : scope->logical_device_);
}

std::span<const Device> LogicalDeviceStrategy::own_devices(const char* what) const {
  const ContextMode& mode = current_mode();
  if (mode.kind == ContextKind::kReplica && mode.strategy == &extended())
    return assignment_.devices_of(mode.local_replica);
  throw WrongContext("{} is for the logical devices of a replica of {}; call it inside run()", what,
                     kLogicalDeviceName);
}

Tensor LogicalDeviceStrategy::assign_to_logical_device(const Tensor& tensor, int logical_device) const {
  static_cast<void>(own_devices("assign_to_logical_device"));
  return tensor.to(assignment_.device(current_mode().local_replica, logical_device));
}

std::vector<Tensor> LogicalDeviceStrategy::split_to_logical_devices(const Tensor& tensor,
                                                                    std::span<const int> partition) const {
  const std::span<const Device> devices = own_devices("split_to_logical_devices");
  require_partition(tensor, partition, devices.size());
  std::vector<std::int64_t> extents(tensor.shape().extents().begin(), tensor.shape().extents().end());
  for (std::size_t axis = 0; axis < extents.size(); ++axis) extents[axis] /= partition[axis];
  std::vector<Tensor> tiles;
  for (const Device device : devices) {
    const auto number = static_cast<int>(tiles.size());
    tiles.push_back(Tensor::uninitialized(Shape(extents), tensor.dtype(), device));
    copy_tile(tensor, tile_of(number, partition), tiles.back());
  }
  return tiles;
}

std::vector<Tensor> LogicalDeviceStrategy::replicate_to_logical_devices(const Tensor& tensor) const {
  std::vector<Tensor> copies;
  for (const Device device : own_devices("replicate_to_logical_devices")) copies.push_back(tensor.to(device));
  return copies;
}

}  // namespace cohort
