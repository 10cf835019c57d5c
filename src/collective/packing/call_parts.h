// The calls that move one tensor: one, or several for a tensor that is larger than the communicator's largest
// call.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cohort/collective/communicator.h>
#include <cohort/device/tensor.h>

namespace cohort {

/// Calls `function(input, output)` for each part of two tensors with as many elements.
template <class Function>
void for_each_call_part(const Communicator& communicator, const Tensor& input, const Tensor& output,
                        Function function) {
  const std::size_t largest = communicator.largest_call_bytes(input);
  if (input.bytes() <= largest) return function(input, output);
  const Tensor from = input.reshape({-1});
  const Tensor to = output.reshape({-1});
  const auto elements = static_cast<std::int64_t>(input.elements());
  const auto step = static_cast<std::int64_t>(largest / size_of(input.dtype()));
  for (std::int64_t begin = 0; begin < elements; begin += step) {
    const std::int64_t end = std::min(begin + step, elements);
    function(from.rows(begin, end), to.rows(begin, end));
  }
}

}  // namespace cohort
