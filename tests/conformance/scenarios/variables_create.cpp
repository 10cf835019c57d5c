// Making variables, and what programs do with them.
#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "variables.h"

namespace cohort::conformance {
namespace {

// Making variables: which kinds there are, what they are called, where they are, how they begin.

/// The original's name for the class of a variable.
std::string class_of(const Layout& l, const Variable& variable) {
  if (l.is_default() || l.is_one_device()) return "ResourceVariable";
  if (keeps_single_copies(l)) return "AggregatingVariable";
  return variable.synchronization() == VariableSynchronization::kOnRead ? "SyncOnReadVariable"
                                                                        : "MirroredVariable";
}

/// [class, synchronization, aggregation, trainable, components]
Json created(const Layout& l, const VariableKind& kind) {
  const Variable variable = make_variable(l, kind, number(1));
  return {class_of(l, variable), name_of(variable.synchronization()), name_of(variable.aggregation()),
          variable.trainable(), components(variable)};
}

/// The name and the device of each component, as the original writes them.
Json names_and_devices(const Layout& l) {
  const Variable variable = make_variable(l, {.name = "foo"});
  const std::string task = l.is_multi_worker() ? fmt::format("/job:worker/replica:0/task:{}", l.worker())
                                               : "/job:localhost/replica:0/task:0";
  Json list = Json::array();
  for (std::size_t i = 0; i < variable.components().size(); ++i) {
    const Device device = variable.components()[i].device();
    list.push_back({fmt::format("{}:0", variable.component_name(static_cast<int>(i))),
                    fmt::format("{}/device:CPU:{}", task, device.index())});
  }
  return list;
}

Json random_components_are_equal(const Layout& l) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> distribution;
  const Variable variable = make_variable(l, {.initial_value = number(distribution(random))});
  const Json values = components(variable);
  return Json(std::ranges::all_of(values, [&](const Json& value) { return value == values[0]; }));
}

/// [class, whether all replicas have the same variable, components]
Json created_in_run(const Layout& l) {
  const PerReplica<Variable> made = l.run([](int) { return Variable({.initial_value = number(0)}); });
  const bool same =
      std::ranges::all_of(made.components(), [&](const Variable& variable) { return variable == made[0]; });
  return {class_of(l, made[0]), same, components(made[0])};
}

}  // namespace

std::vector<Scenario> variable_creation_scenarios() {
  std::vector<Scenario> scenarios{
      {"var/create_onread_trainable_true",
       [](const Layout& l) {
         return Json(
             make_variable(l, {.synchronization = VariableSynchronization::kOnRead, .trainable = true})
                 .trainable());
       }},
      {"var/names_devices", names_and_devices},
      {"var/random_init_equal", random_components_are_equal},
      {"var/in_run", created_in_run},
      {"var/in_run_mismatching_name",
       [](const Layout& l) {
         const PerReplica<Variable> made =
             l.run([](int r) { return Variable({.name = fmt::format("of replica {}", r)}); });
         return Json(class_of(l, made[0]));
       },
       {{"mwms2", "workers compare names", [](const Layout&) { return an_error(); }}}},
  };
  for (const VariableAggregation aggregation : aggregations()) {
    for (const auto synchronization : {VariableSynchronization::kAuto, VariableSynchronization::kNone,
                                       VariableSynchronization::kOnWrite, VariableSynchronization::kOnRead}) {
      const VariableKind kind{synchronization, aggregation};
      scenarios.push_back(
          {fmt::format("var/create_{}", name_of(kind)), [=](const Layout& l) { return created(l, kind); }});
    }
    for (const auto& [synchronization, prefix] :
         {std::pair(VariableSynchronization::kOnWrite, "int"),
          std::pair(VariableSynchronization::kOnRead, "int_onread")}) {
      const VariableKind kind{synchronization, aggregation};
      scenarios.push_back(
          {fmt::format("var/create_{}_{}", prefix, name_of(aggregation)),
           [=](const Layout& l) { return Json(class_of(l, make_variable(l, kind, Tensor::scalar(1)))); }});
    }
  }
  return scenarios;
}

namespace {

// What programs do with vectors that are variables: look at them, compute with them, let them follow an
// average; and which assignments are refused.

Variable vector_variable(const Layout& l, std::vector<double> values) {
  return make_variable(
      l, {.initial_value = vector(std::move(values)), .aggregation = VariableAggregation::kMean});
}

/// 2 * v + v[0]
Json computes(const Layout& l) {
  const Variable variable = vector_variable(l, {3, 4});
  const auto scope = l.strategy().scope();
  const Tensor value = variable.read();
  const auto v = value.span<float>();
  return {2 * v[0] + v[0], 2 * v[1] + v[0]};
}

Json shape_and_dtype(const Layout& l) {
  const Variable variable = vector_variable(l, {3, 4});
  return {fmt::format("({},)", variable.shape()[0]), std::string(to_string(variable.dtype()))};
}

/// `average` keeps a quarter of itself, the rest becomes that of the mean of all replicas' values.
void follow(const Variable& average, double first, double second) {
  const Tensor now = average.read();
  const auto away = [&](std::size_t i, double value) { return 0.75 * (now.span<float>()[i] - value); };
  average.assign_sub(vector({away(0, first), away(1, second)}));
}

Json follows_replicas(const Layout& l) {
  const Variable average = vector_variable(l, {10, 11});
  l.run([&](int r) {
    follow(average, 1 + r, 2 - r);
    return None();
  });
  return components(average);
}

Json follows_one_value(const Layout& l) {
  const Variable average = vector_variable(l, {10, 11});
  const auto scope = l.strategy().scope();
  follow(average, 1, 2);
  return components(average);
}

Json assigns_another_shape(const Layout& l) {
  const Variable variable = vector_variable(l, {3, 4});
  const auto scope = l.strategy().scope();
  return show(variable.assign(vector({1, 2, 3})).read());
}

Json assigns_a_fraction_to_an_integer(const Layout& l) {
  const Variable variable = make_variable(l, {.initial_value = Tensor::scalar(1)});
  const auto scope = l.strategy().scope();
  return show(variable.assign(1.5).read());
}

}  // namespace

std::vector<Scenario> variable_use_scenarios() {
  return {
      {"var/operators_cross", computes},
      {"var/shape_dtype", shape_and_dtype},
      {"var/moving_average_replica", follows_replicas},
      {"var/moving_average_cross", follows_one_value},
      {"var/assign_wrong_shape", assigns_another_shape},
      {"var/assign_float_to_int", assigns_a_fraction_to_an_integer},
  };
}

}  // namespace cohort::conformance
