// The values of RemoteValues in structures. Internal.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include <cohort/coordinator/remote_value.h>
#include <cohort/value/structure.h>

namespace cohort::coordinator {

/// `value` with the value of each RemoteValue in its place; what is none stays as it is.
template <class T>
auto fetch_all(const T& value) {
  if constexpr (cohort::detail::kIsInstance<T, RemoteValue>) {
    return value.get();
  } else if constexpr (cohort::detail::kIsInstance<T, std::vector>) {
    std::vector<decltype(fetch_all(value.front()))> result;
    result.reserve(value.size());
    for (const auto& element : value) result.push_back(fetch_all(element));
    return result;
  } else if constexpr (cohort::detail::kIsInstance<T, std::map>) {
    std::map<typename T::key_type, decltype(fetch_all(value.begin()->second))> result;
    for (const auto& [key, element] : value) result.emplace(key, fetch_all(element));
    return result;
  } else if constexpr (cohort::detail::kIsInstance<T, std::tuple>) {
    // Braces, since these are fetched from left to right.
    return std::apply(
        [](const auto&... parts) { return std::tuple<decltype(fetch_all(parts))...>{fetch_all(parts)...}; },
        value);
  } else {
    return value;
  }
}

}  // namespace cohort::coordinator
