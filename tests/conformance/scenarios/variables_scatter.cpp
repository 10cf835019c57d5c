// Updates of rows of [1, 2, 4].
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "variables.h"

namespace cohort::conformance {
namespace {

struct Scatter {
  std::string_view name;
  const Variable& (Variable::*apply)(const IndexedSlices&) const;
  double (*result)(double before, double value);
};
constexpr std::array kScatters{
    Scatter{"add", &Variable::scatter_add, [](double before, double value) { return before + value; }},
    Scatter{"sub", &Variable::scatter_sub, [](double before, double value) { return before - value; }},
    Scatter{"mul", &Variable::scatter_mul, [](double before, double value) { return before * value; }},
    Scatter{"div", &Variable::scatter_div, [](double before, double value) { return before / value; }},
    Scatter{"max", &Variable::scatter_max,
            [](double before, double value) { return std::max(before, value); }},
    Scatter{"min", &Variable::scatter_min,
            [](double before, double value) { return std::min(before, value); }},
    Scatter{"update", &Variable::scatter_update, [](double /*before*/, double value) { return value; }},
};

IndexedSlices row(int index, double value) { return {vector({value}), Tensor::from({index}), {3}}; }

Json in_replicas(const Layout& l, const VariableKind& kind, const Scatter& scatter) {
  const Variable variable = make_variable(l, kind, vector({1, 2, 4}));
  l.run([&](int r) { return (variable.*scatter.apply)(row(r % 3, 2 + r)); });
  return components(variable);
}

Json across(const Layout& l, const VariableKind& kind, const Scatter& scatter) {
  const Variable variable = make_variable(l, kind, vector({1, 2, 4}));
  const auto scope = l.strategy().scope();
  (variable.*scatter.apply)(row(1, 2));
  return components(variable);
}

void add_scenarios(std::vector<Scenario>& scenarios, const Scatter& scatter, const VariableKind& kind,
                   const std::string& suffix) {
  const std::string prefix = fmt::format("var/scatter_{}_{}/", scatter.name, suffix);
  std::vector<Difference> first_of_all;
  const double first = scatter.result(1, 2);  // what replica 0 makes of row 0
  if (kind.first_only() && first != 1) {
    first_of_all = {{"mwms2", kFirstOfAll, [=](const Layout&) { return Json::array({{first, 2.0, 4.0}}); }}};
  }
  scenarios.push_back(
      {prefix + "replica", [=](const Layout& l) { return in_replicas(l, kind, scatter); }, first_of_all});
  scenarios.push_back({prefix + "cross", [=](const Layout& l) { return across(l, kind, scatter); }});
}

}  // namespace

std::vector<Scenario> variable_scatter_scenarios() {
  std::vector<Scenario> scenarios;
  for (const Scatter& scatter : kScatters) {
    for (const VariableAggregation aggregation : aggregations()) {
      add_scenarios(scenarios, scatter, {VariableSynchronization::kOnWrite, aggregation},
                    name_of(aggregation));
    }
    add_scenarios(scenarios, scatter, {VariableSynchronization::kOnRead, VariableAggregation::kSum},
                  "ONREAD");
  }
  return scenarios;
}

}  // namespace cohort::conformance
