// `assign`, `assign_add` and `assign_sub` outside replicas, which every component gets, and inside `update`.
#include "variables_assign.h"

namespace cohort::conformance {
namespace {

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

}  // namespace cohort::conformance
