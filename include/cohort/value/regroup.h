// Taking structures of distributed values apart, and putting them together again.
//
// `select_replica` gives one replica's view of a structure: each distributed value in it is
// replaced by that replica's component. `regroup` is the inverse: of one structure per
// replica it makes one structure of distributed values. Structures are tuples, pairs,
// arrays, vectors and maps, nested at will; everything else is a value. An optional is
// taken apart, but not put together: it may be empty on some replicas only.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/value/distributed_values.h>
#include <cohort/value/mirrored.h>
#include <cohort/value/per_replica.h>
#include <cohort/value/structure.h>
#include <cohort/value/variable.h>

namespace cohort {

namespace detail {

// What a type is to this header: a distributed value, a structure of other types, or a value.
template <class T>
struct Selection {
  static constexpr bool kDistributed = false;
  using Component = T;
  static const T& select(std::size_t /*replica*/, const T& value) { return value; }
};

template <Distributed T>
struct Selection<T> {
  static constexpr bool kDistributed = true;
  using Component = typename T::value_type;
  static const Component& select(std::size_t replica, const T& value) { return value.of_replica(replica); }
};

template <class T, class A>
struct Selection<std::vector<T, A>> {
  static constexpr bool kDistributed = Selection<T>::kDistributed;
  using Component = std::vector<typename Selection<T>::Component>;
  static Component select(std::size_t replica, const std::vector<T, A>& value) {
    Component result;
    result.reserve(value.size());
    for (const auto& element : value) result.push_back(Selection<T>::select(replica, element));
    return result;
  }
};

template <class T>
struct Selection<std::optional<T>> {
  static constexpr bool kDistributed = Selection<T>::kDistributed;
  using Component = std::optional<typename Selection<T>::Component>;
  static Component select(std::size_t replica, const std::optional<T>& value) {
    return value ? Component(Selection<T>::select(replica, *value)) : Component();
  }
};

template <class K, class T, class C, class A>
struct Selection<std::map<K, T, C, A>> {
  static constexpr bool kDistributed = Selection<T>::kDistributed;
  using Component = std::map<K, typename Selection<T>::Component, C>;
  static Component select(std::size_t replica, const std::map<K, T, C, A>& value) {
    Component result;
    for (const auto& [key, element] : value) result.emplace(key, Selection<T>::select(replica, element));
    return result;
  }
};

template <class... T>
struct Selection<std::tuple<T...>> {
  static constexpr bool kDistributed = (Selection<T>::kDistributed || ...);
  using Component = std::tuple<typename Selection<T>::Component...>;
  static Component select(std::size_t replica, const std::tuple<T...>& value) {
    return std::apply([&](const T&... fields) { return Component(Selection<T>::select(replica, fields)...); },
                      value);
  }
};

template <class A, class B>
struct Selection<std::pair<A, B>> {
  static constexpr bool kDistributed = Selection<A>::kDistributed || Selection<B>::kDistributed;
  using Component = std::pair<typename Selection<A>::Component, typename Selection<B>::Component>;
  static Component select(std::size_t replica, const std::pair<A, B>& value) {
    return {Selection<A>::select(replica, value.first), Selection<B>::select(replica, value.second)};
  }
};

template <class T, std::size_t kSize>
struct Selection<std::array<T, kSize>> {
  static constexpr bool kDistributed = Selection<T>::kDistributed;
  using Component = std::array<typename Selection<T>::Component, kSize>;
  static Component select(std::size_t replica, const std::array<T, kSize>& value) {
    return std::apply(
        [&](const auto&... elements) { return Component{Selection<T>::select(replica, elements)...}; },
        value);
  }
};

/// Whether there is a distributed value anywhere in a T.
template <class T>
inline constexpr bool kHoldsDistributed = Selection<std::remove_cvref_t<T>>::kDistributed;

template <class T>
inline constexpr bool kIsMap = kIsInstance<T, std::map>;

/// Calls `function` with each distributed value in a structure.
template <class Function, class T>
void for_each_distributed(const Function& function, const T& value) {
  if constexpr (Distributed<T>) {
    function(value);
  } else if constexpr (kIsInstance<T, std::optional>) {
    if (value) for_each_distributed(function, *value);
  } else if constexpr (kIsInstance<T, std::vector>) {
    for (const auto& element : value) for_each_distributed(function, element);
  } else if constexpr (kIsMap<T>) {
    for (const auto& [key, element] : value) for_each_distributed(function, element);
  } else if constexpr (TupleLike<T>) {
    std::apply([&](const auto&... fields) { (for_each_distributed(function, fields), ...); }, value);
  }
}

/// Throws if a PerReplica in `value` does not have one component for each of `replicas`: `select_replica`
/// would not notice that there are more.
template <class T>
void require_components(const T& value, int replicas) {
  if constexpr (kHoldsDistributed<T>) {
    for_each_distributed(
        [replicas]<class D>(const D& distributed) {
          if (!kIsInstance<D, PerReplica> || static_cast<int>(distributed.size()) == replicas) return;
          throw InvalidArgument(
              "a PerReplica value of {} components was given to a strategy with {} local replicas; it "
              "belongs to another strategy",
              distributed.size(), replicas);
        },
        value);
  }
}

/// Whether `local_results` looks inside.
template <class T>
inline constexpr bool kIsStructure =
    kIsInstance<T, std::vector> || kIsMap<T> || TupleLike<T> || WithFields<T>;

/// `member(values[r])` for each replica r.
template <template <class> class Kind, class T, class Member>
[[nodiscard]] auto members(const Kind<T>& values, Member member) {
  using Result = std::remove_cvref_t<decltype(member(values[0]))>;
  std::vector<Result> result;
  result.reserve(values.size());
  for (const T& value : values.components()) result.push_back(member(value));
  if constexpr (requires { values.is_part(); })  // what is one worker's part stays one
    return Kind<Result>(std::move(result), values.is_part() ? 2 : 1);
  else
    return Kind<Result>(std::move(result));
}

}  // namespace detail

/// What local replica `replica` sees of `value`.
/// @throws InvalidArgument when a PerReplica in it has no such component.
template <class T>
[[nodiscard]] typename detail::Selection<T>::Component select_replica(std::size_t replica, const T& value) {
  return detail::Selection<T>::select(replica, value);
}

/// One structure of distributed values from one structure per replica: its values become PerReplica, or
/// Mirrored if that is what `values` is, and the same Variable on every replica stays that Variable.
/// @throws InvalidArgument when the replicas' structures differ in length or keys, or when they name
/// different variables.
template <template <class> class Kind, class T>
requires Distributed<Kind<T>>
[[nodiscard]] auto regroup(const Kind<T>& values) {
  static_cast<void>(values[0]);  // throws for no replicas
  if constexpr (std::is_same_v<T, Variable>) {
    for (const Variable& variable : values.components()) {
      if (!(variable == values[0])) {
        throw InvalidArgument("regroup: replicas name different variables, '{}' and '{}'", values[0].name(),
                              variable.name());
      }
    }
    return values[0];
  } else if constexpr (detail::kIsInstance<T, std::vector>) {
    std::vector<decltype(regroup(std::declval<Kind<typename T::value_type>>()))> result;
    for (std::size_t replica = 1; replica < values.size(); ++replica) {
      if (values[replica].size() == values[0].size()) continue;
      throw InvalidArgument("regroup: replica {} has {} elements, replica 0 has {}", replica,
                            values[replica].size(), values[0].size());
    }
    for (std::size_t i = 0; i < values[0].size(); ++i)
      result.push_back(regroup(detail::members(values, [&](const T& value) { return value[i]; })));
    return result;
  } else if constexpr (detail::kIsMap<T>) {
    std::map<typename T::key_type, decltype(regroup(std::declval<Kind<typename T::mapped_type>>()))> result;
    for (std::size_t replica = 1; replica < values.size(); ++replica) {
      const auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
      if (std::equal(values[replica].begin(), values[replica].end(), values[0].begin(), values[0].end(),
                     same_key))
        continue;
      throw InvalidArgument("regroup: replica {} has a map with other keys than replica 0", replica);
    }
    for (const auto& entry : values[0]) {
      result.emplace(entry.first,
                     regroup(detail::members(values, [&](const T& value) { return value.at(entry.first); })));
    }
    return result;
  } else if constexpr (detail::TupleLike<T>) {
    const auto field = [&]<std::size_t kAt>(std::integral_constant<std::size_t, kAt>) {
      return regroup(detail::members(values, [](const T& value) { return std::get<kAt>(value); }));
    };
    return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      if constexpr (detail::kIsArray<T>) {
        using Element = decltype(regroup(std::declval<Kind<typename T::value_type>>()));
        return std::array<Element, sizeof...(kIndex)>{
            field(std::integral_constant<std::size_t, kIndex>{})...};
      } else if constexpr (detail::kIsInstance<T, std::pair>) {
        return std::make_pair(field(std::integral_constant<std::size_t, kIndex>{})...);
      } else {
        return std::make_tuple(field(std::integral_constant<std::size_t, kIndex>{})...);
      }
    }
    (std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    return values;
  }
}

}  // namespace cohort
