// What is read of a variable to which each replica has assigned r + 1, and what can be saved of it.
#include <fmt/format.h>

#include "variables.h"

namespace cohort::conformance {
namespace {

Json read_in_replicas(const Layout& l, const VariableKind& kind) {
  const Variable variable = counted_variable(l, kind);
  return show(l.run([&](int) { return variable.read(); }));
}

Json read_in_scope(const Layout& l, const VariableKind& kind) {
  const Variable variable = counted_variable(l, kind);
  const auto scope = l.strategy().scope();
  return show(variable.read());
}

Json read_outside(const Layout& l, const VariableKind& kind) {
  return show(counted_variable(l, kind).read());
}

/// A program saves what it reads outside replicas, and restores it by assigning it.
Json saved_and_restored(const Layout& l, const VariableKind& kind) {
  const Tensor saved = counted_variable(l, kind).read();
  const Variable again = make_variable(l, kind, number(0));
  again.assign(saved);
  const Variable plain({.initial_value = number(0)});
  plain.assign(saved);
  return {{"saved", show(saved)}, {"restored_components", components(again)}, {"plain", show(plain.read())}};
}

Json one(const Layout& /*l*/) { return 1.0; }

void add_scenarios(std::vector<Scenario>& scenarios, const VariableKind& kind) {
  const std::string prefix = fmt::format("var/{}_read/", name_of(kind));
  std::vector<Difference> inside;
  std::vector<Difference> across;
  if (kind.first_only()) {
    across = {{"mwms2", kFirstOfAll, one}};
    if (!kind.on_read()) inside = across;
  }
  for (const char* way : {"run", "run_convert"})
    scenarios.push_back({prefix + way, [=](const Layout& l) { return read_in_replicas(l, kind); }, inside});
  for (const char* way : {"scope", "scope_op"})
    scenarios.push_back({prefix + way, [=](const Layout& l) { return read_in_scope(l, kind); }, across});
  for (const char* way : {"numpy", "value"})
    scenarios.push_back({prefix + way, [=](const Layout& l) { return read_outside(l, kind); }, across});

  if (kind.on_read() && kind.first_only()) across.push_back({"mirrored2 mirrored3", kTensors, one});
  scenarios.push_back({prefix + "read_var", [=](const Layout& l) { return read_in_scope(l, kind); }, across});
  scenarios.push_back({fmt::format("var/checkpoint_{}", name_of(kind)),
                       [=](const Layout& l) { return saved_and_restored(l, kind); }});
}

}  // namespace

std::vector<Scenario> variable_read_scenarios() {
  std::vector<Scenario> scenarios;
  for (const VariableKind& kind : variable_kinds()) add_scenarios(scenarios, kind);
  return scenarios;
}

}  // namespace cohort::conformance
