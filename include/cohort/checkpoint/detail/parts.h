// The parts of a structure, with names for them. Internal: Checkpoint adds each as a value of its own.
#pragma once

#include <cstddef>
#include <map>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/value/structure.h>

namespace cohort::checkpoint {

/// A vector of numbers is one value.
template <class T>
inline constexpr bool kIsVectorOfParts = false;
template <class T>
inline constexpr bool kIsVectorOfParts<std::vector<T>> = !Element<T>;

template <class T>
concept WithParts =
    kIsVectorOfParts<T> || detail::kIsInstance<T, std::map> || detail::TupleLike<T> || detail::WithFields<T>;

/// Calls `function(name, part)`: names are keys of maps, and otherwise numbers from 0.
template <WithParts S, class Function>
void for_each_part(S& structure, Function function) {
  const auto each_of = [&](auto parts) {
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      (function(kIndex, std::get<kIndex>(parts)), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(parts)>>{});
  };
  if constexpr (kIsVectorOfParts<S>) {
    for (std::size_t i = 0; i < structure.size(); ++i) function(i, structure[i]);
  } else if constexpr (detail::kIsInstance<S, std::map>) {
    for (auto& [key, part] : structure) function(key, part);
  } else if constexpr (detail::TupleLike<S>) {
    each_of(std::apply([](auto&... parts) { return std::tie(parts...); }, structure));
  } else {
    each_of(cohort_fields(structure));
  }
}

}  // namespace cohort::checkpoint
