// `assign`, `assign_add` and `assign_sub` inside replicas, where the values of all of them come together.
#include <algorithm>

#include "variables_assign.h"

namespace cohort::conformance {
namespace {

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

}  // namespace cohort::conformance
