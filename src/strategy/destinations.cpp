#include <cohort/strategy/destinations.h>

#include <algorithm>

namespace cohort {
namespace {

Device parsed(std::string_view name) {
  if (name.empty()) throw InvalidArgument("destinations cannot be empty; name a device, for example cpu:0");
  return Device::parse(name);
}

}  // namespace

Destinations::Destinations(std::string_view name) : devices_{parsed(name)} {}

Destinations::Destinations(const Variable& variable) {
  for (const Tensor& component : variable.components()) devices_.push_back(component.device());
}

void Destinations::add(std::span<const TensorOrSlices> component) {
  if (component.empty()) throw InvalidArgument("destinations cannot be empty; a component has no tensors");
  devices_.push_back(values_of(component.front()).device());
}

void Destinations::require_devices() const {
  if (devices_.empty())
    throw InvalidArgument(
        "destinations cannot be empty; the value has no components, or the list no devices");
}

bool Destinations::matches(const Destinations& other) const {
  return std::ranges::is_permutation(devices_, other.devices_);
}

}  // namespace cohort
