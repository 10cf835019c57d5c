// Which elements can be stacked and split: structures in which every leaf is a tensor.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

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

}  // namespace cohort::detail
