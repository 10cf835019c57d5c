// A dataset of a program's arrays, in which each row is an element. Lists are arrays, too.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/device/tensor_ops.h>
#include <cohort/input/dataset.h>

namespace cohort {

namespace detail {

/// A list of tensors of one shape becomes one tensor, also inside tuples.
template <class Arrays>
[[nodiscard]] auto stack_lists(const Arrays& arrays) {
  if constexpr (std::is_same_v<Arrays, std::vector<Tensor>>) {
    return stack_tensors(arrays);
  } else if constexpr (kIsInstance<Arrays, std::tuple> || kIsInstance<Arrays, std::pair>) {
    return std::apply([](const auto&... parts) { return std::tuple(stack_lists(parts)...); }, arrays);
  } else {
    return arrays;
  }
}

}  // namespace detail

/// One element per row of the arrays: tensors, lists of tensors of one shape, which are stacked, or tuples of
/// both. @throws InvalidArgument when they differ in rows, or a list is empty.
template <class Arrays>
[[nodiscard]] auto make_dataset(const Arrays& arrays) {
  auto tensors = detail::stack_lists(arrays);
  return Dataset<decltype(tensors)>::from_tensor_slices(std::move(tensors));
}

}  // namespace cohort
