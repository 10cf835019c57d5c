// A contiguous tensor as [outer, channels, inner]: what lies before the axis of the channels and after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cohort/base/error.h>
#include <cohort/device/tensor.h>

namespace cohort {

struct Channels {
  Channels(const Shape& shape, int axis) : count(static_cast<std::size_t>(shape[axis])) {
    for (int before = 0; before < axis; ++before) outer *= static_cast<std::size_t>(shape[before]);
    for (int after = axis + 1; after < shape.rank(); ++after) inner *= static_cast<std::size_t>(shape[after]);
  }

  /// How many numbers each channel has.
  [[nodiscard]] std::size_t rows() const noexcept { return outer * inner; }

  /// Calls `function(channel, index)` for each element, in the order of the memory.
  template <class Function>
  void for_each(Function function) const {
    if (inner == 1) {  // the loop over the channels is the one to be vectorised
      for (std::size_t row = 0; row < outer; ++row)
        for (std::size_t channel = 0; channel < count; ++channel) function(channel, row * count + channel);
      return;
    }
    for (std::size_t run = 0; run < outer * count; ++run)
      for (std::size_t i = 0; i < inner; ++i) function(run % count, run * inner + i);
  }

  std::size_t outer = 1;
  std::size_t count;
  std::size_t inner = 1;
};

/// Calls `function(std::type_identity<T>{})` with the element type of a floating tensor.
template <class Function>
void visit_floating_elements(const Tensor& tensor, Function function) {
  visit_dtype(tensor.dtype(), [&]<class T>(std::type_identity<T> type) {
    if constexpr (HalfElement<T> || std::is_floating_point_v<T>)
      function(type);
    else
      throw Internal("{} is not floating", describe(tensor));
  });
}

}  // namespace cohort
