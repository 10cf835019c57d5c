#include <cohort/strategy/logical_device_strategy.h>

#include <functional>
#include <numeric>
#include <utility>

#include <fmt/ranges.h>

#include <cohort/collective/thread_communicator.h>

#include "device/device_runtime.h"

namespace cohort {
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
