// Structures of tensors: tuples, pairs, vectors, arrays, maps, optionals and plain aggregates, nested at
// will. Their leaves are tensors, IndexedSlices and numbers. `for_each_leaf` is the one place that knows how
// to walk them; collectives, batches and gradients all go through it.
//
// An aggregate names its fields once, beside its definition and in its namespace:
//
//     struct Batch { Tensor images; Tensor labels; };
//     COHORT_FIELDS(Batch, images, labels)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>
#include <cohort/device/tensor.h>
#include <cohort/value/tensor_or_slices.h>

/// Makes the aggregate `Type` a structure; lists all of its fields, in order.
#define COHORT_FIELDS(Type, ...)                                             \
  [[maybe_unused]] inline auto cohort_fields(Type& cohort_structure) {       \
    auto& [__VA_ARGS__] = cohort_structure;                                  \
    return ::std::tie(__VA_ARGS__);                                          \
  }                                                                          \
  [[maybe_unused]] inline auto cohort_fields(const Type& cohort_structure) { \
    const auto& [__VA_ARGS__] = cohort_structure;                            \
    return ::std::tie(__VA_ARGS__);                                          \
  }

namespace cohort {

namespace detail {

template <class T, template <class...> class Template>
inline constexpr bool kIsInstance = false;
template <template <class...> class Template, class... Args>
inline constexpr bool kIsInstance<Template<Args...>, Template> = true;

template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t kSize>
inline constexpr bool kIsArray<std::array<T, kSize>> = true;

template <class T>
concept WithFields = requires(T& value) {
  cohort_fields(value);
};

template <class T>
concept TupleLike = kIsInstance<T, std::tuple> || kIsInstance<T, std::pair> || kIsArray<T>;

/// The types that leaves of a structure have.
template <class T>
concept Leaf = std::same_as<T, Tensor> || std::same_as<T, IndexedSlices> || std::same_as<T, TensorOrSlices> ||
    Element<T>;

/// Says, once for each type, that it is none.
template <class T>
constexpr void require_structure() {
  constexpr bool kIsLeaf = Leaf<T>;
  static_assert(
      kIsLeaf,
      "not a structure of tensors: use tensors, IndexedSlices, numbers, tuples, vectors, arrays, maps, "
      "optionals, or aggregates, whose fields COHORT_FIELDS(Type, fields...) names");
}

}  // namespace detail

/// Calls `function(leaf, others...)` for each leaf of `first` with the leaves in the same place of the other
/// structures, in declaration order. Leaves are const where their structure is.
/// @throws InvalidArgument when they differ in length, keys or presence.
template <class Function, class First, class... Others>
void for_each_leaf(Function&& function, First& first, Others&... others) {
  using S = std::remove_const_t<First>;
  if constexpr (detail::Leaf<S>) {
    function(first, others...);
  } else if constexpr (detail::kIsInstance<S, std::vector>) {
    constexpr bool kHasElements = !std::is_same_v<S, std::vector<bool>>;
    static_assert(kHasElements, "vector<bool> has no elements to refer to; use vector<std::int8_t>");
    if (!((first.size() == others.size()) && ...)) {
      throw InvalidArgument("structures differ: vectors of different length ({} in the first)", first.size());
    }
    if constexpr (kHasElements) {
      for (std::size_t i = 0; i < first.size(); ++i) for_each_leaf(function, first[i], others[i]...);
    }
  } else if constexpr (detail::kIsInstance<S, std::map>) {
    for (auto& [key, value] : first) {
      if (!(others.contains(key) && ...))
        throw InvalidArgument("structures differ: maps with different keys");
      for_each_leaf(function, value, others.find(key)->second...);
    }
    if (!((first.size() == others.size()) && ...))
      throw InvalidArgument("structures differ: maps with different keys");
  } else if constexpr (detail::kIsInstance<S, std::optional>) {
    if (!((first.has_value() == others.has_value()) && ...)) {
      throw InvalidArgument("structures differ: an optional is empty in one of them only");
    }
    if (first) for_each_leaf(function, *first, *others...);
  } else if constexpr (detail::TupleLike<S>) {
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      [[maybe_unused]] const auto at = [&]<std::size_t kAt>(std::integral_constant<std::size_t, kAt>) {
        for_each_leaf(function, std::get<kAt>(first), std::get<kAt>(others)...);
      };
      (at(std::integral_constant<std::size_t, kIndex>{}), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<S>>{});
  } else if constexpr (detail::WithFields<S>) {
    const auto walk = [&](auto fields, auto... other_fields) {
      [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
        [[maybe_unused]] const auto at = [&]<std::size_t kAt>(std::integral_constant<std::size_t, kAt>) {
          for_each_leaf(function, std::get<kAt>(fields), std::get<kAt>(other_fields)...);
        };
        (at(std::integral_constant<std::size_t, kIndex>{}), ...);
      }
      (std::make_index_sequence<std::tuple_size_v<decltype(fields)>>{});
    };
    walk(cohort_fields(first), cohort_fields(others)...);
  } else {
    detail::require_structure<S>();
  }
}

namespace detail {

template <class Key>
void add_key(Fingerprint& fingerprint, const Key& key) {
  if constexpr (std::is_integral_v<Key> || std::is_enum_v<Key>) {
    fingerprint.add(static_cast<std::uint64_t>(key));
  } else {
    for (const auto character : key) fingerprint.add(static_cast<std::uint64_t>(character));
    fingerprint.add(key.size());
  }
}

template <class S>
void add_structure(Fingerprint& fingerprint, const S& structure) {
  if constexpr (std::is_same_v<S, IndexedSlices>) {
    fingerprint.add(4);
  } else if constexpr (std::is_same_v<S, TensorOrSlices>) {
    fingerprint.add(is_sparse(structure) ? 4 : 1);
  } else if constexpr (Leaf<S>) {
    fingerprint.add(1);
  } else if constexpr (kIsInstance<S, std::vector>) {
    fingerprint.add(structure.size());
    for (const auto& element : structure) add_structure(fingerprint, element);
  } else if constexpr (kIsInstance<S, std::map>) {
    fingerprint.add(structure.size());
    for (const auto& [key, value] : structure) {
      add_key(fingerprint, key);
      add_structure(fingerprint, value);
    }
  } else if constexpr (kIsInstance<S, std::optional>) {
    fingerprint.add(structure.has_value() ? 2 : 3);
    if (structure) add_structure(fingerprint, *structure);
  } else {
    const auto each = [&](const auto&... fields) { (add_structure(fingerprint, fields), ...); };
    if constexpr (TupleLike<S>)
      std::apply(each, structure);
    else if constexpr (WithFields<S>)
      std::apply(each, cohort_fields(structure));
  }
}

}  // namespace detail

/// What replicas must agree on beside the shapes of their tensors: keys, lengths, which leaves are
/// sparse, and which optionals are present. Keys are strings, integers or enumerators.
template <class Structure>
[[nodiscard]] std::uint64_t structure_fingerprint(const Structure& structure) {
  Fingerprint fingerprint;
  detail::add_structure(fingerprint, structure);
  return fingerprint.value();
}

/// A copy of `structure` in which `function(leaf)` has replaced every leaf.
template <class Function, class Structure>
[[nodiscard]] Structure map_structure(Function&& function, const Structure& structure) {
  Structure result = structure;
  for_each_leaf([&](auto& leaf) { leaf = function(std::as_const(leaf)); }, result);
  return result;
}

}  // namespace cohort
