// What is read of variables, and what reductions of them give.
#include <fmt/format.h>

#include "variables.h"

namespace cohort::conformance {
namespace {

// What is read of a variable to which each replica has assigned r + 1, and what can be saved of it.

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

namespace {

// `reduce` of variables, and of values that are equal by promise.

Json reduced(const Layout& l, ReduceOp op, VariableAggregation aggregation) {
  return show(l.strategy().reduce(op, counted_variable(l, {VariableSynchronization::kOnRead, aggregation})));
}

/// The mean of all replicas' r + 1 where those are, reduced once more.
Json reduced_again(const Layout& l, ReduceOp op) {
  const PerReplica<Tensor> values = l.each([](int r) { return number(r + 1); });
  const auto scope = l.strategy().scope();
  return show(l.strategy().reduce(op, l.strategy().extended().reduce_to(ReduceOp::kMean, values, values)));
}

/// Where variables are single copies, a mean is the value that r + 1 were aggregated to.
double aggregate_of_one_and_two(VariableAggregation aggregation) {
  if (aggregation == VariableAggregation::kSum) return 3;
  return aggregation == VariableAggregation::kMean ? 1.5 : 1;
}

void add_scenarios(std::vector<Scenario>& scenarios, ReduceOp op, std::string_view name) {
  for (const VariableAggregation aggregation : aggregations()) {
    std::vector<Difference> tensors{
        {"default1 onedevice1", kTensors, [](const Layout&) { return Json(1.0); }}};
    if (op == ReduceOp::kMean && aggregation != VariableAggregation::kNone) {
      tensors.push_back(
          {"central2", kTensors, [=](const Layout&) { return Json(aggregate_of_one_and_two(aggregation)); }});
    }
    scenarios.push_back({fmt::format("reduce/{}_onread_{}", name, name_of(aggregation)),
                         [=](const Layout& l) { return reduced(l, op, aggregation); }, tensors});
  }
  scenarios.push_back(
      {fmt::format("reduce/{}_mirrored_value", name), [=](const Layout& l) { return reduced_again(l, op); }});
}

}  // namespace

std::vector<Scenario> variable_reduction_scenarios() {
  std::vector<Scenario> scenarios;
  add_scenarios(scenarios, ReduceOp::kSum, "SUM");
  add_scenarios(scenarios, ReduceOp::kMean, "MEAN");
  scenarios.push_back({"reduce/MEAN_mirrored_var",
                       [](const Layout& l) {
                         const Variable variable = make_variable(l, {.initial_value = number(2)});
                         return show(l.strategy().reduce(ReduceOp::kMean, variable));
                       },
                       {{"", kTensors, [](const Layout&) { return Json(2.0); }}}});
  return scenarios;
}

}  // namespace cohort::conformance
