// A Device is a place of a worker where a replica computes: `cpu:K`, a set of the
// worker's cores, or `cuda:K`, a GPU. It is a small value: a name, no resources.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

enum class DeviceKind { kCpu, kCuda };

class Device {
 public:
  /// `cpu:0`.
  Device() = default;
  Device(DeviceKind kind, int index) : kind_(kind), index_(index) {}

  /// Reads `cpu:K` or `cuda:K` (also `cpu`, `CPU:0`, `/cpu:0`, `/device:CPU:0`, `gpu:K`).
  /// @throws InvalidArgument saying what a device name looks like.
  [[nodiscard]] static Device parse(std::string_view name);

  /// The same, where a name stands for a device: `MirroredStrategy({"cuda:0", "cuda:1"})`.
  template <std::convertible_to<std::string_view> Name>
  Device(const Name& name)  // NOLINT(google-explicit-constructor): reads as the name
      requires(!std::same_as<Name, std::nullptr_t>)
      : Device(parse(name)) {}

  [[nodiscard]] static Device cpu(int index) { return {DeviceKind::kCpu, index}; }

  [[nodiscard]] DeviceKind kind() const noexcept { return kind_; }
  [[nodiscard]] int index() const noexcept { return index_; }

  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the default's comparison with 0 for a pointer
  friend auto operator<=>(const Device&, const Device&) = default;

 private:
  DeviceKind kind_ = DeviceKind::kCpu;
  int index_ = 0;
};

/// For example `cpu:0`.
[[nodiscard]] std::string to_string(Device device);

[[nodiscard]] inline bool is_cpu(Device device) noexcept { return device.kind() == DeviceKind::kCpu; }

/// `cpu:0` to `cpu:count-1`.
[[nodiscard]] std::vector<Device> cpu_devices(int count);

/// All GPUs that this process sees; none in programs without GPU support.
[[nodiscard]] std::vector<Device> gpu_devices();

/// @throws Unavailable when there is no such device. CPUs are always there: they are cores of this process.
void require_exists(Device device);

/// Blocks until everything that was queued for `device` has been done; nothing is queued for CPUs.
void synchronize(Device device);

}  // namespace cohort
