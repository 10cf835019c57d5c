// `reduce` of variables, and of values that are equal by promise.
#include <fmt/format.h>

#include "variables.h"

namespace cohort::conformance {
namespace {

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
