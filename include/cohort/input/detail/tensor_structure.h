// Structures in which every leaf is a tensor: the elements that can be stacked into batches and split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/device/tensor_ops.h>
#include <cohort/input/split.h>
#include <cohort/value/structure.h>

namespace cohort::detail {

template <class T>
constexpr bool holds_only_tensors();

/// For tuples, such as `cohort_fields` returns.
template <class Fields>
constexpr bool fields_hold_only_tensors() {
  return []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return (holds_only_tensors<std::remove_cvref_t<std::tuple_element_t<kIndex, Fields>>>() && ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Fields>>{});
}

template <class T>
constexpr bool holds_only_tensors() {
  if constexpr (std::is_same_v<T, Tensor>)
    return true;
  else if constexpr (kIsInstance<T, std::vector> || kIsInstance<T, std::optional>)
    return holds_only_tensors<typename T::value_type>();
  else if constexpr (kIsInstance<T, std::map>)
    return holds_only_tensors<typename T::mapped_type>();
  else if constexpr (TupleLike<T>)
    return fields_hold_only_tensors<T>();
  else if constexpr (WithFields<T>)
    return fields_hold_only_tensors<decltype(cohort_fields(std::declval<T&>()))>();
  else
    return false;
}

template <class T>
concept TensorStructure = holds_only_tensors<T>();

/// `rows[range]` stacked: each tensor gets a new first axis.
/// @throws InvalidArgument when the rows differ in structure, shape or dtype.
template <class Element>
[[nodiscard]] Element stack_rows(const std::vector<Element>& rows, RowRange range) {
  std::vector<std::vector<Tensor>> columns;  // for each tensor of the element: its rows
  for (std::int64_t index = range.begin; index < range.end; ++index) {
    std::size_t column = 0;
    for_each_leaf(
        [&](const Tensor& tensor) {
          if (column == columns.size()) columns.emplace_back();
          columns[column++].push_back(tensor);
        },
        rows[static_cast<std::size_t>(index)]);
  }
  std::size_t column = 0;
  return map_structure(
      [&](const Tensor& like) {
        // An empty part still has the shape and dtype of its rows.
        if (columns.empty()) return stack_tensors(std::span<const Tensor>(&like, 1)).rows(0, 0);
        return stack_tensors(columns[column++]);
      },
      rows.front());
}

}  // namespace cohort::detail
