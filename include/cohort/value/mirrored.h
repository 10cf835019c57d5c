// A Mirrored holds the same value on several devices: the code that makes it promises that its components are
// equal. So it may be used as an operand everywhere: inside a replica it stands for the replica's component,
// elsewhere for the one on the current device. Reductions to several devices return one.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/device/tensor.h>
#include <cohort/value/context.h>
#include <cohort/value/device_scope.h>
#include <cohort/value/distributed_values.h>

namespace cohort {

template <class T>
class Mirrored : public DistributedValues<Mirrored<T>, T> {
 public:
  static constexpr std::string_view kName = "Mirrored";

  Mirrored() = default;
  explicit Mirrored(std::vector<T> components) : DistributedValues<Mirrored<T>, T>(std::move(components)) {}

  /// The component of the replica that runs or is updated; elsewhere the one on the current device.
  /// Where there is no such component, the first. @throws InvalidArgument when there are none at all.
  [[nodiscard]] const T& local() const& {
    const ContextMode& mode = current_mode();
    if (mode.local_replica >= 0) return of_replica(static_cast<std::size_t>(mode.local_replica));
    if constexpr (std::is_same_v<T, Tensor>) {
      for (const Tensor& component : this->components())
        if (component.device() == current_device()) return component;
    }
    return (*this)[0];
  }
  [[nodiscard]] T local() && { return std::as_const(*this).local(); }

  /// The component that local replica `replica` gets: its own, or the first if it has none.
  [[nodiscard]] const T& of_replica(std::size_t replica) const& {
    return (*this)[replica < this->size() ? replica : 0];
  }
  [[nodiscard]] T of_replica(std::size_t replica) && { return std::as_const(*this).of_replica(replica); }
};

}  // namespace cohort
