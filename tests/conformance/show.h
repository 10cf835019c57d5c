// Values in the notation of golden.jsonl. With one local replica the original hands out
// bare values, and so a PerReplica or Mirrored of one component is shown as its component.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/value/indexed_slices.h>
#include <cohort/value/mirrored.h>
#include <cohort/value/per_replica.h>
#include <cohort/value/variable.h>

#include "record.h"

namespace cohort::conformance {

/// What the original calls None.
using None = std::monostate;

[[nodiscard]] Json show(const Tensor& tensor);
[[nodiscard]] Json show(const IndexedSlices& slices);

[[nodiscard]] inline Json show(None /*nothing*/) { return nullptr; }
[[nodiscard]] inline Json show(bool value) { return value; }
[[nodiscard]] inline Json show(int value) { return value; }
[[nodiscard]] inline Json show(double value) { return std::isnan(value) ? Json("nan") : Json(value); }
[[nodiscard]] inline Json show(const char* text) { return text; }
[[nodiscard]] inline Json show(const std::string& text) { return text; }

template <class T>
[[nodiscard]] Json show(const std::optional<T>& value);
template <class T>
[[nodiscard]] Json show(const std::vector<T>& values);
template <class T>
[[nodiscard]] Json show(const std::map<std::string, T>& values);
template <class... T>
[[nodiscard]] Json show(const std::tuple<T...>& values);
template <class T>
[[nodiscard]] Json show(const PerReplica<T>& value);
template <class T>
[[nodiscard]] Json show(const Mirrored<T>& value);

/// The local components of a variable.
[[nodiscard]] Json show_components(const Variable& variable);

/// What the replicas have, leaf by leaf: structures outside, distributed values inside.
template <class T>
[[nodiscard]] Json show_components(const std::vector<T>& components);

// ---- implementation

namespace detail {

template <class T>
struct Walk {
  static Json of(const std::vector<T>& components) {
    Json list = Json::array();
    for (const T& component : components) list.push_back(show(component));
    return list.size() == 1 ? list.front() : Json{{"PerReplica", list}};
  }
};

template <>
struct Walk<None> {
  static Json of(const std::vector<None>& /*components*/) { return nullptr; }
};

template <class... T>
struct Walk<std::tuple<T...>> {
  static Json of(const std::vector<std::tuple<T...>>& components) {
    Json list = Json::array();
    const auto add = [&]<std::size_t kIndex>(std::integral_constant<std::size_t, kIndex>) {
      std::vector<std::tuple_element_t<kIndex, std::tuple<T...>>> parts;
      parts.reserve(components.size());
      for (const auto& component : components) parts.push_back(std::get<kIndex>(component));
      list.push_back(show_components(parts));
    };
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      (add(std::integral_constant<std::size_t, kIndex>{}), ...);
    }
    (std::index_sequence_for<T...>{});
    return list;
  }
};

template <class T>
struct Walk<std::vector<T>> {
  static Json of(const std::vector<std::vector<T>>& components) {
    Json list = Json::array();
    for (std::size_t i = 0; i < components.front().size(); ++i) {
      std::vector<T> parts;
      parts.reserve(components.size());
      for (const auto& component : components) parts.push_back(component.at(i));
      list.push_back(show_components(parts));
    }
    return list;
  }
};

template <class T>
struct Walk<std::map<std::string, T>> {
  static Json of(const std::vector<std::map<std::string, T>>& components) {
    Json object = Json::object();
    for (const auto& [key, value] : components.front()) {
      std::vector<T> parts;
      parts.reserve(components.size());
      for (const auto& component : components) parts.push_back(component.at(key));
      object[key] = show_components(parts);
    }
    return object;
  }
};

}  // namespace detail

template <class T>
Json show(const std::optional<T>& value) {
  return value ? show(*value) : Json(nullptr);
}

template <class T>
Json show(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(show(value));
  return list;
}

template <class T>
Json show(const std::map<std::string, T>& values) {
  Json object = Json::object();
  for (const auto& [key, value] : values) object[key] = show(value);
  return object;
}

template <class... T>
Json show(const std::tuple<T...>& values) {
  return std::apply(
      [](const auto&... parts) {
        Json list = Json::array();
        (list.push_back(show(parts)), ...);
        return list;
      },
      values);
}

template <class T>
Json show(const PerReplica<T>& value) {
  return show_components(std::vector<T>(value.components().begin(), value.components().end()));
}

template <class T>
Json show(const Mirrored<T>& value) {
  const Json list = show(std::vector<T>(value.components().begin(), value.components().end()));
  return list.size() == 1 ? list.front() : Json{{"Mirrored", list}};
}

template <class T>
Json show_components(const std::vector<T>& components) {
  return detail::Walk<T>::of(components);
}

}  // namespace cohort::conformance
