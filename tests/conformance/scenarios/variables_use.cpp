// What programs do with vectors that are variables: look at them, compute with them, let them follow an
// average; and which assignments are refused.
#include <fmt/format.h>

#include "variables.h"

namespace cohort::conformance {
namespace {

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
