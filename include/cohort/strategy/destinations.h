// Where the result of a reduction or broadcast goes: a list of devices, given by name, or by a value that
// lies where the result should.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/device/device.h>
#include <cohort/value/distributed_values.h>
#include <cohort/value/leaves.h>
#include <cohort/value/variable.h>

namespace cohort {

// NOLINTBEGIN(google-explicit-constructor): reads as reduce_to(op, value, "cpu:0")
class Destinations {
 public:
  Destinations(Device device) : devices_{device} {}
  explicit Destinations(std::span<const Device> devices) : devices_(devices.begin(), devices.end()) {
    require_devices();
  }

  /// Named as Device::parse wants it. @throws InvalidArgument for an empty name, or one of no device.
  Destinations(std::string_view name);
  Destinations(const char* name) : Destinations(std::string_view(name)) {}
  Destinations(const std::string& name) : Destinations(std::string_view(name)) {}

  /// Where the tensor or the slices are.
  Destinations(const Tensor& tensor) : devices_{tensor.device()} {}
  Destinations(const IndexedSlices& slices) : devices_{slices.values.device()} {}
  Destinations(const TensorOrSlices& leaf) : devices_{values_of(leaf).device()} {}

  /// Where the components are, one result for each. The variable is not changed.
  Destinations(const Variable& variable);

  /// Where the components are, one result for each. Where a component is a structure, its first leaf
  /// decides; numbers are on cpu:0. @throws InvalidArgument for no components, or one without leaves.
  template <Distributed Value>
  Destinations(const Value& value) {
    for (const auto& component : value.components()) add(to_leaves(component));
    require_devices();
  }

  /// One per result; several results may go to one device.
  [[nodiscard]] std::span<const Device> devices() const& noexcept { return devices_; }
  [[nodiscard]] std::vector<Device> devices() && { return std::move(devices_); }

  /// Whether both name the same devices, in whichever order.
  [[nodiscard]] bool matches(const Destinations& other) const;

 private:
  void add(std::span<const TensorOrSlices> component);
  void require_devices() const;

  std::vector<Device> devices_;
};
// NOLINTEND(google-explicit-constructor)

}  // namespace cohort
