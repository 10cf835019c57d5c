// The templates behind `StrategyExtended::update`; included by <cohort/strategy/strategy.h>.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/strategy/strategy.h>

namespace cohort {
namespace detail {

/// Whether two arguments differ; values of types that cannot be compared count as equal. Structures are
/// compared leaf by leaf: they claim to be comparable even if their elements are not.
template <class T>
[[nodiscard]] bool differ(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return !bitwise_equal(a, b);
  } else if constexpr (std::is_same_v<T, IndexedSlices>) {
    return a.dense_shape != b.dense_shape || differ(a.indices, b.indices) || differ(a.values, b.values);
  } else if constexpr (std::is_same_v<T, TensorOrSlices>) {
    if (is_sparse(a) != is_sparse(b)) return true;
    return is_sparse(a) ? differ(std::get<IndexedSlices>(a), std::get<IndexedSlices>(b))
                        : differ(std::get<Tensor>(a), std::get<Tensor>(b));
  } else if constexpr (kIsInstance<T, std::optional>) {
    return a.has_value() != b.has_value() || (a && differ(*a, *b));
  } else if constexpr (kIsInstance<T, std::vector> || kIsMap<T>) {
    return !std::ranges::equal(a, b, [](const auto& x, const auto& y) { return !differ(x, y); });
  } else if constexpr (TupleLike<T>) {
    return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      return (differ(std::get<kIndex>(a), std::get<kIndex>(b)) || ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (WithFields<T>) {
    return differ(cohort_fields(a), cohort_fields(b));
  } else if constexpr (std::floating_point<T>) {
    return !(a == b || (std::isnan(a) && std::isnan(b)));
  } else if constexpr (std::equality_comparable<T>) {
    return !(a == b);
  } else {
    return false;
  }
}

template <class Arg>
void require_same_on_all_replicas(const Variable& variable, const Arg& arg, int replicas) {
  if constexpr (kHoldsDistributed<Arg> && !kIsInstance<Arg, Mirrored>) {
    const auto& first = component_of(arg, 0);
    for (int replica = 1; replica < replicas; ++replica) {
      if (!differ(component_of(arg, replica), first)) continue;
      throw InvalidArgument(
          "update of variable '{}' with a PerReplica argument whose components differ: they would make the "
          "variable's components differ, which its aggregation {} keeps equal; reduce the argument first",
          variable.name(), to_string(variable.aggregation()));
    }
  }
}

/// Collects what `body(component)` returns.
template <class Run, class Body>
auto collect(Run run, Body body) {
  using Result = std::remove_cvref_t<std::invoke_result_t<Body&, int>>;
  if constexpr (std::is_void_v<Result>) {
    run(body);
  } else {
    std::vector<Result> results;
    run([&](int component) { results.push_back(body(component)); });
    return Mirrored<Result>(std::move(results));
  }
}

/// Keeps a distributed result whole where a merge would give each replica its component.
template <class T>
struct Whole {
  T value;
};

}  // namespace detail

template <class Function, class... Args>
auto StrategyExtended::update_across(const Variable& variable, Function& function, const Args&... args) {
  require_updatable(variable);
  (detail::require_components(args, local_replicas()), ...);
  if (keeps_equal(variable)) (detail::require_same_on_all_replicas(variable, args, local_replicas()), ...);
  return detail::collect([&](const auto& body) { update_components(variable, body); },
                         [&]([[maybe_unused]] int component) {
                           return function(variable, detail::component_of(args, component)...);
                         });
}

template <class Function, class... Args>
auto StrategyExtended::update(const Variable& variable, Function&& function, const Args&... args) {
  constexpr bool kTakesArguments =
      std::is_invocable_v<Function&, const Variable&, const detail::Component<Args>&...>;
  static_assert(
      kTakesArguments,
      "the function of update() takes (const Variable&, arguments...): the arguments of update() in "
      "their order, by value or const reference, and a PerReplica<T> or Mirrored<T> as T");
  if constexpr (kTakesArguments) return update_checked(variable, function, args...);
}

template <class Function, class... Args>
auto StrategyExtended::update_checked(const Variable& variable, Function& function, const Args&... args) {
  using Result = decltype(update_across(variable, function, args...));
  const ContextMode& mode = current_mode();
  if (mode.kind != ContextKind::kReplica || mode.strategy != this)
    return update_across(variable, function, args...);

  const auto merged = [&](const Strategy&, const auto&... of_replicas) {
    if constexpr (std::is_void_v<Result>)
      update_across(variable, function, of_replicas...);
    else
      return detail::Whole<Result>{update_across(variable, function, of_replicas...)};
  };
  const auto local = static_cast<std::size_t>(mode.local_replica);
  const PurposeOf purpose(Fingerprint().add(fingerprint_of("update")).add(variable.state()->number()).value(),
                          Caller::kReplica, mode.replica->device(), [&] {
                            return PurposeWords{
                                "updates " + variable.name(),
                                fmt::format("variable number {}", variable.state()->number())};
                          });
  if constexpr (std::is_void_v<Result>)
    mode.replica->merge_call_for(purpose, merged, select_replica(local, args)...);
  else
    return mode.replica->merge_call_for(purpose, merged, select_replica(local, args)...).value;
}

template <class Function, class... Args>
auto StrategyExtended::update_non_slot(std::span<const Device> devices, Function&& function,
                                       const Args&... args) {
  constexpr bool kTakesArguments = std::is_invocable_v<Function&, const detail::Component<Args>&...>;
  static_assert(
      kTakesArguments,
      "the function of update_non_slot() takes the arguments of update_non_slot() in their order, by "
      "value or const reference, and a PerReplica<T> or Mirrored<T> as T");
  if constexpr (kTakesArguments) {
    return detail::collect(
        [&](const auto& body) { update_components(devices, body); },
        [&]([[maybe_unused]] int component) { return function(detail::component_of(args, component)...); });
  }
}

}  // namespace cohort
