// What functions are given, and what `fetch` makes of structures.
#include <cstdio>

#include "../scenarios/common.h"
#include "coordinated.h"

namespace cohort::conformance {

struct Nested {
  std::int64_t x = 0;
  std::vector<std::int64_t> y;
};
COHORT_FIELDS(Nested, x, y)

namespace {

std::int64_t two(std::int64_t a, std::int64_t b) { return 10 * a + b; }

Tensor plus_one(const Variable& variable) {
  const Tensor result = variable.read().clone();
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

}  // namespace cohort::conformance
