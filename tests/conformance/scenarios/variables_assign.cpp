// Assignments of variables: inside replicas, outside of them, and of rows.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "variables.h"

namespace cohort::conformance {
namespace {

// `assign`, `assign_add` and `assign_sub` inside replicas, where the values of all of them come together.

constexpr std::string_view kReplicasNumber = "a number is a value of its replica";

/// What an assignment returned: the variable here, of which the value is compared; in the original the
/// variable, a component or the new value, in whose notation it is shown.
Json returned(const Layout& l, const VariableKind& kind, const PerReplica<double>& values) {
  const bool alike =
      std::ranges::all_of(values.components(), [&](double value) { return value == values[0]; });
  if (values.size() == 1 || (keeps_single_copies(l) && alike)) return handle(values[0]);
  if (kind.keeps_equal()) return show(values);
  Json list = Json::array();
  for (const double value : values.components()) list.push_back(handle(value));
  return {{"PerReplica", list}};
}

Json outcome(const Layout& l, const Variable& variable, const VariableKind& kind,
             const PerReplica<double>& values) {
  return {{"after", components(variable)}, {"returned", returned(l, kind, values)}};
}

/// `change(variable, r)` inside each replica.
template <class Change>
Json changed(const Layout& l, const VariableKind& kind, const Tensor& start, Change change) {
  const Variable variable = make_variable(l, kind, start);
  const auto values = l.run([&](int r) {
    const Variable& result = change(variable, r);
    return result.read().item<double>();
  });
  return outcome(l, variable, kind, values);
}

/// What comes out where all components end as `value`.
Json all_have(const Layout& l, const VariableKind& kind, double value) {
  const std::size_t count = keeps_single_copies(l) ? 1 : l.local_ids().size();
  return {{"after", std::vector<double>(count, value)},
          {"returned", returned(l, kind, l.each([&](int) { return value; }))}};
}

/// Each replica assigns its own tensor.
Json assigns_own(const Layout& l, const Assignment& a) {
  return changed(l, a.kind, number(kStart), [&](const Variable& variable, int r) -> const Variable& {
    return (variable.*a.operation.of_tensor)(number(r + 1));
  });
}

/// Each replica assigns the argument that it is given.
Json assigns_argument(const Layout& l, const Assignment& a) {
  const Variable variable = make_variable(l, a.kind, number(kStart));
  const auto values = l.strategy().run(
      [&](const Tensor& own) { return (variable.*a.operation.of_tensor)(own).read().item<double>(); },
      l.each([](int r) { return number(2 * (r + 1)); }));
  return outcome(l, variable, a.kind, values);
}

/// All replicas assign the same number.
Json assigns_number(const Layout& l, const Assignment& a) {
  return changed(l, a.kind, number(kStart), [&](const Variable& variable, int) -> const Variable& {
    return (variable.*a.operation.of_number)(5);
  });
}

Json assigns_integer(const Layout& l, const VariableKind& kind) {
  return changed(l, kind, Tensor::scalar(10), [](const Variable& variable, int r) -> const Variable& {
    return variable.assign(Tensor::scalar(r + 1));
  });
}

/// Replica 0's value counts on all workers.
std::vector<Difference> first_of_all(const Assignment& a, double value) {
  if (a.kind.on_read() || !a.kind.first_only()) return {};
  return {{"mwms2", kFirstOfAll,
           [=](const Layout& l) { return all_have(l, a.kind, a.operation.result(kStart, value)); }}};
}

/// The number 5 counts once per replica in layouts `where` the original fails.
std::vector<Difference> counts_each(const Assignment& a, std::string_view where) {
  return {{where, kReplicasNumber, [=](const Layout& l) {
             const bool sum = a.kind.aggregation == VariableAggregation::kSum;
             return all_have(l, a.kind, a.operation.result(kStart, sum ? 5.0 * l.replicas() : 5.0));
           }}};
}

/// Where the original fails with one number that is the same object on all replicas.
std::vector<Difference> literal_differs(const Assignment& a) {
  if (a.kind.aggregation != VariableAggregation::kSum) return {};
  return counts_each(a, a.kind.on_read() ? "central2" : "mirrored2 mirrored3 central2");
}

/// Where it fails with equal numbers that are different objects.
std::vector<Difference> fresh_number_differs(const Assignment& a) {
  if (!a.kind.keeps_equal() || a.kind.first_only()) return {};
  return counts_each(a, "mirrored2 mirrored3");
}

void add_scenarios(std::vector<Scenario>& scenarios, const Assignment& a) {
  scenarios.push_back(
      {a.scenario("replica_value"), [=](const Layout& l) { return assigns_own(l, a); }, first_of_all(a, 1)});
  scenarios.push_back({a.scenario("replica_perreplica_arg"),
                       [=](const Layout& l) { return assigns_argument(l, a); }, first_of_all(a, 2)});
  scenarios.push_back({a.scenario("replica_literal"), [=](const Layout& l) { return assigns_number(l, a); },
                       literal_differs(a)});
  scenarios.push_back({a.scenario("replica_fresh_float"),
                       [=](const Layout& l) { return assigns_number(l, a); }, fresh_number_differs(a)});
}

}  // namespace

std::vector<Scenario> variable_assignment_in_replicas_scenarios() {
  std::vector<Scenario> scenarios;
  for (const VariableKind& kind : variable_kinds()) {
    for (const Operation& operation : kOperations) add_scenarios(scenarios, {kind, operation});
    const Assignment integer{kind, kOperations[0]};
    scenarios.push_back({integer.scenario("int_replica_value"),
                         [=](const Layout& l) { return assigns_integer(l, kind); },
                         first_of_all(integer, 1)});
  }
  return scenarios;
}

namespace {

// `assign`, `assign_add` and `assign_sub` outside replicas, which every component gets, and inside `update`.

constexpr std::string_view kOperand = "PerReplica is an operand inside replicas only";
constexpr std::string_view kUpdate = "updates keep components equal";
constexpr std::string_view kRemainder = "an integer sum keeps its remainder";

/// What an assignment returned: the variable here, of which the value is compared; in the original the
/// variable, a component or the new value, in whose notation it is shown.
Json returned(const Layout& l, const Variable& variable) {
  Json value = show(variable.read());
  if (keeps_single_copies(l)) return handle(value);
  if (variable.synchronization() == VariableSynchronization::kOnRead) return value;
  return l.local_ids().size() == 1 ? handle(value) : Json{{"Mirrored", components(variable)}};
}

Json after(const Layout& l, const Variable& changed) {
  return {{"after", components(changed)}, {"returned", returned(l, changed)}};
}

Json assigns_number_across(const Layout& l, const Assignment& a) {
  const Variable variable = make_variable(l, a.kind, number(kStart));
  const auto scope = l.strategy().scope();
  return after(l, (variable.*a.operation.of_number)(6));
}

Json assigns_number_outside(const Layout& l, const Assignment& a) {
  const Variable variable = make_variable(l, a.kind, number(kStart));
  return after(l, (variable.*a.operation.of_number)(6));
}

Json assigns_per_replica(const Layout& l, const Assignment& a) {
  const Variable variable = make_variable(l, a.kind, number(kStart));
  const auto scope = l.strategy().scope();
  return after(l, (variable.*a.operation.of_tensor)(l.each([](int r) { return number(r + 1); })));
}

Json updates(const Layout& l, const Assignment& a) {
  const Variable variable = make_variable(l, a.kind, number(kStart));
  l.strategy().extended().update(
      variable, [&](const Variable& own, const Tensor& value) { (own.*a.operation.of_tensor)(value); },
      l.each([](int r) { return number(r + 1); }));
  return {{"after", components(variable)}};
}

Json assigns_integer_across(const Layout& l, const VariableKind& kind) {
  const Variable variable = make_variable(l, kind, Tensor::scalar(10));
  const auto scope = l.strategy().scope();
  return after(l, variable.assign(6));
}

Json assigns_seven(const Layout& l, const VariableKind& kind) {
  const Variable variable = make_variable(l, kind, Tensor::scalar(10));
  const auto scope = l.strategy().scope();
  variable.assign(7);
  return components(variable);
}

/// 7 shared out among integers.
Json shares_of_seven(const Layout& l) {
  Json shares = Json::array();
  for (const int id : l.local_ids()) shares.push_back(7 / l.replicas() + (id == 0 ? 7 % l.replicas() : 0));
  return shares;
}

/// [the original's class of the error, components]
Json components_after_error(const Layout& l, const Assignment& a) {
  const Variable variable = make_variable(l, a.kind, number(kStart));
  const auto scope = l.strategy().scope();
  Json error = nullptr;
  try {
    (variable.*a.operation.of_number)(6);
  } catch (const WrongContext&) {
    error = "ValueError";
  }
  return {error, components(variable)};
}

std::vector<Difference> is_an_error(std::string_view where, std::string_view why) {
  return {{where, why, [](const Layout&) { return an_error(); }}};
}

void add_scenarios_across(std::vector<Scenario>& scenarios, const Assignment& a) {
  scenarios.push_back(
      {a.scenario("cross_literal"), [=](const Layout& l) { return assigns_number_across(l, a); }});
  scenarios.push_back(
      {a.scenario("outside_literal"), [=](const Layout& l) { return assigns_number_outside(l, a); }});
  scenarios.push_back(
      {a.scenario("cross_perreplica"), [=](const Layout& l) { return assigns_per_replica(l, a); },
       is_an_error(a.kind.on_read() ? "onedevice1 central2" : "onedevice1 mirrored2 mirrored3 central2 mwms2",
                   kOperand)});
  scenarios.push_back(
      {a.scenario("update"), [=](const Layout& l) { return updates(l, a); },
       a.kind.keeps_equal() ? is_an_error("mirrored2 mirrored3", kUpdate) : std::vector<Difference>()});
  scenarios.push_back(
      {a.scenario("components_after_error"), [=](const Layout& l) { return components_after_error(l, a); }});
}

}  // namespace

std::vector<Scenario> variable_assignment_across_scenarios() {
  std::vector<Scenario> scenarios;
  for (const VariableKind& kind : variable_kinds()) {
    for (const Operation& operation : kOperations) add_scenarios_across(scenarios, {kind, operation});
    const Assignment integer{kind, kOperations[0]};
    const bool shared_out = kind.on_read() && kind.aggregation == VariableAggregation::kSum;
    scenarios.push_back({integer.scenario("int_cross_literal"),
                         [=](const Layout& l) { return assigns_integer_across(l, kind); }});
    scenarios.push_back(
        {integer.scenario("int_cross_7"), [=](const Layout& l) { return assigns_seven(l, kind); },
         shared_out ? std::vector<Difference>{{"mirrored2 mirrored3 mwms2", kRemainder, shares_of_seven}}
                    : std::vector<Difference>()});
  }
  return scenarios;
}

namespace {

// Updates of rows of [1, 2, 4].

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
