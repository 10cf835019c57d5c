// What functions are given and what they return.
#include <cstdio>

#include <cohort/device/float16.h>

#include "../scenarios/common.h"
#include "coordinated.h"

namespace cohort::conformance {

// What functions are given, and what `fetch` makes of structures.

struct Nested {
  std::int64_t x = 0;
  std::vector<std::int64_t> y;
};
COHORT_FIELDS(Nested, x, y)

namespace {

// What functions return, and what arrives of it.

std::int64_t two(std::int64_t a, std::int64_t b) { return 10 * a + b; }

Tensor plus_one(const Variable& variable) {
  Tensor result = variable.read().clone();
  for (float& element : result.span<float>()) element += 1;
  return result;
}

float made_in_function() {
  const Variable own({.initial_value = number(1)});
  return own.read().item<float>() + 1;
}

Json fetched_structure(Coordinated& cluster) {
  const auto numbered = [&](std::int64_t number) { return cluster.schedule_add(number); };
  const std::tuple<RemoteValue<std::int64_t>, int> inner(numbered(2), 9);
  const auto [a, b, c, d] = cluster.coordinator().fetch(
      std::tuple(numbered(3), std::tuple(numbered(1), inner), None(), std::string("s")));
  return {{"a", a}, {"b", b}, {"c", show(c)}, {"d", d}};
}

}  // namespace

std::vector<Family> argument_families(Coordinated& cluster) {
  const auto plays = [&](std::string_view pattern, Play play) {
    return line(cluster, pattern, std::move(play));
  };
  return {
      plays("*/arg_args_kwargs",
            [](Coordinated& c) { return Json(c.coordinator().schedule<two>(3, 4).fetch()); }),
      plays("*/arg_kwargs_only",
            [](Coordinated& c) { return Json(c.coordinator().schedule<two>(1, 2).fetch()); }),
      plays("*/arg_nested_arg",
            [](Coordinated& c) {
              constexpr auto kSum = [](const Nested& nested) { return nested.x + nested.y.front(); };
              return Json(c.coordinator().schedule<kSum>(Nested{1, {2}}).fetch());
            }),
      plays("*/arg_variable_arg",
            [](Coordinated& c) { return show(c.coordinator().schedule<plus_one>(c.numbers).fetch()); }),
      plays("*/arg_print",
            [](Coordinated& c) {
              c.coordinator().schedule<[] { std::fputs("x\n", stderr); }>().fetch();
              return Json(nullptr);
            }),
      line(cluster, "*/arg_create_variable",
           [](Coordinated& c) { return Json(c.coordinator().schedule<made_in_function>().fetch()); },
           {{"*/arg_create_variable", kOwnVariables, [](const Record& /*record*/) { return Json(2.0); }}}),
      plays("*/fetch_struct", fetched_structure),
      plays("*/fetch_plain",
            [](Coordinated& c) {
              return show(c.coordinator().fetch(std::tuple(1, std::string("x"), None())));
            }),
      plays("*/fetch_tensor",
            [](Coordinated& c) {
              return show(c.coordinator().fetch(Tensor::from({1, 2})));
            }),
      plays("*/fetch_tuple_type",
            [](Coordinated& c) {
              const auto both = c.coordinator().fetch(std::tuple(c.schedule_add(3), c.schedule_add(3)));
              return Json(std::tuple_size_v<decltype(both)> == 2 ? "tuple" : "another");
            }),
      plays("*/fetch_variable",
            [](Coordinated& c) {
              const Variable same = c.coordinator().fetch(c.numbers);
              return Json(same.state() == c.numbers.state() ? "CachingVariable" : "another");
            }),
      plays("*/fetch_empty",
            [](Coordinated& c) {
              return Json(c.coordinator().fetch(std::vector<RemoteValue<std::int64_t>>()));
            }),
  };
}

struct Named {
  std::int64_t a = 0;
  std::tuple<float, std::string> b;
};
COHORT_FIELDS(Named, a, b)

struct PartlyAbsent {
  std::optional<std::int64_t> a;
  std::int64_t b = 0;
};
COHORT_FIELDS(PartlyAbsent, a, b)

namespace {

constexpr std::string_view kAbsent = "a part of a result may be absent";
using Ragged = std::vector<std::vector<std::int64_t>>;

template <class T>
Json shown_as(const T& value) {
  if constexpr (std::is_same_v<T, Named>)
    return {{"a", value.a}, {"b", value.b}};
  else if constexpr (std::is_same_v<T, PartlyAbsent>)
    return {{"a", value.a ? Json(*value.a) : Json()}, {"b", value.b}};
  else if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, IndexedSlices>)
    return show(value);
  else if constexpr (std::is_same_v<T, bfloat16>)
    return static_cast<float>(value);
  else if constexpr (std::is_same_v<T, std::tuple<>>)
    return Json::array();
  else
    return value;
}

/// The original's names of the class that comes from `fetch`, and from `get`.
template <class T>
std::pair<const char*, const char*> classes_of() {
  const auto alike = [](const char* name) { return std::pair(name, name); };
  if constexpr (std::is_void_v<T>)
    return alike("NoneType");
  else if constexpr (std::is_same_v<T, bool>)
    return {"bool", "EagerTensor"};
  else if constexpr (std::is_same_v<T, int>)
    return {"int32", "EagerTensor"};
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return {"int64", "EagerTensor"};
  else if constexpr (std::is_same_v<T, float>)
    return {"float32", "EagerTensor"};
  else if constexpr (std::is_same_v<T, bfloat16>)
    return {"bfloat16", "EagerTensor"};
  else if constexpr (std::is_same_v<T, std::string>)
    return {"bytes", "EagerTensor"};
  else if constexpr (std::is_same_v<T, Tensor>)
    return {"ndarray", "EagerTensor"};
  else if constexpr (std::is_same_v<T, IndexedSlices>)
    return alike("IndexedSlices");
  else if constexpr (std::is_same_v<T, Ragged>)
    return {"ndarray", "RaggedTensor"};
  else if constexpr (cohort::detail::kIsInstance<T, std::vector>)
    return alike("list");
  else if constexpr (cohort::detail::kIsInstance<T, std::tuple>)
    return alike("tuple");
  else
    return alike("dict");
}

template <class T>
Json shown(const RemoteValue<T>& value) {
  if constexpr (std::is_void_v<T>) {
    value.fetch();
    return nullptr;
  } else {
    return shown_as(value.fetch());
  }
}

template <class T>
Json fetched_by(const ClusterCoordinator& coordinator, const RemoteValue<T>& value) {
  if constexpr (std::is_void_v<T>) {
    coordinator.fetch(value);
    return nullptr;
  } else {
    return shown_as(coordinator.fetch(value));
  }
}

template <auto kFunction>
Json result_of(const Coordinated& cluster) {
  const auto value = cluster.coordinator().schedule<kFunction>();
  using T = decltype(value.get());
  return {{"join", outcome_of_join(cluster.coordinator())},
          {"fetch", shown(value)},
          {"fetch_type", classes_of<T>().first},
          {"get_type", classes_of<T>().second},
          {"coordinator_fetch", fetched_by(cluster.coordinator(), value)},
          {"fetch_again", shown(value)}};
}

}  // namespace

std::vector<Family> result_families(Coordinated& cluster) {
  const auto result = [&](std::string_view pattern, Play play) {
    return line(cluster, pattern, std::move(play));
  };
  std::vector<Family> all{
      result("*/result_scalar_int", result_of<[] { return std::int64_t{7}; }>),
      result("*/result_scalar_float", result_of<[] { return 1.5F; }>),
      result("*/result_vector", result_of<[] {
               return vector({1, 2});
             }>),
      result("*/result_matrix", result_of<[] {
               return tensor({1, 1, 1, 1, 1, 1}, {2, 3});
             }>),
      result("*/result_string", result_of<[] { return std::string("abc"); }>),
      result("*/result_bool", result_of<[] { return true; }>),
      result("*/result_none", result_of<[] {}>),
      result("*/result_tuple", result_of<[] { return std::tuple(std::int64_t{1}, 2.0F); }>),
      result("*/result_list", result_of<[] {
               return std::vector<std::int64_t>{1, 2};
             }>),
      result("*/result_dict", result_of<[] {
               return Named{1, {2.0F, "x"}};
             }>),
      result("*/result_empty_tuple", result_of<[] { return std::tuple(); }>),
      result("*/result_python_int", result_of<[] { return 5; }>),
      result("*/result_python_mixed", result_of<[] { return std::tuple(5, std::int64_t{6}); }>),
      result("*/result_empty_tensor", result_of<[] {
               return Tensor::zeros({0, 3}, DType::kFloat32);
             }>),
      result("*/result_indexed_slices", result_of<[] {
               return IndexedSlices{vector({1, 2}), Tensor::from(std::vector<std::int64_t>{0, 1}), {2}};
             }>),
      result("*/result_bfloat16", result_of<[] { return bfloat16(1.5F); }>),
      result("*/result_ragged", result_of<[] {
               return Ragged{{1, 2}, {3}};
             }>),
  };
  all.push_back(line(cluster, "*/result_nested_none", result_of<[] {
                       return PartlyAbsent{std::nullopt, 1};
                     }>,
                     {{"*/result_nested_none", kAbsent, [](const Record& /*record*/) {
                         const Json value{{"a", nullptr}, {"b", 1}};
                         return Json{{"join", nullptr},
                                     {"fetch", value},
                                     {"fetch_type", "dict"},
                                     {"get_type", "dict"},
                                     {"coordinator_fetch", value},
                                     {"fetch_again", value}};
                       }}}));
  return all;
}

}  // namespace cohort::conformance
