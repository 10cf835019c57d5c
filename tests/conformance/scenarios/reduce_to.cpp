// `reduce_to` and `batch_reduce_to`: which operators and destinations they take, and where results are.
#include "common.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kOneReplica = "default1 onedevice1";
constexpr std::string_view kChecked = "a destination is checked";
constexpr std::string_view kOwnDestination = "each value goes to its own destination";

using Pairs = std::vector<std::pair<PerReplica<Tensor>, Destinations>>;

/// The value on its own devices.
Json reduce_to_itself(const Layout& l, SumOrMean op) {
  const PerReplica<Tensor> value = counted(l);
  return show(l.strategy().extended().reduce_to(op, value, value));
}

void add_operator(ReduceOp op, const std::string& name, std::vector<Scenario>& scenarios) {
  const std::string prefix = "ext/reduce_to_" + name;
  scenarios.push_back({prefix + "_self", [=](const Layout& l) { return reduce_to_itself(l, op); }});
  scenarios.push_back({prefix + "_var", [=](const Layout& l) {
                         const Variable variable = variable_of(l, 1);
                         const auto result = l.strategy().extended().reduce_to(op, counted(l), variable);
                         return Json{show(result), show_components(variable)};
                       }});
  scenarios.push_back({prefix + "_plain", [=](const Layout& l) {
                         return show(l.strategy().extended().reduce_to(op, number(2), variable_of(l, 1)));
                       }});
}

Scenario wrong_destination(const std::string& name, std::string_view destination) {
  return {"ext/reduce_to_" + name,
          [=](const Layout& l) {
            return show(l.strategy().extended().reduce_to(ReduceOp::kSum, counted(l), destination));
          },
          {{kOneReplica, kChecked, [](const Layout& /*l*/) { return an_error(); }}}};
}

Json both_to_themselves(const Layout& l) {
  const PerReplica<Tensor> scalars = counted(l);
  const PerReplica<Tensor> vectors = l.each([](int r) { return vector({1.0 * r, 1}); });
  return show(l.strategy().extended().batch_reduce_to(ReduceOp::kMean,
                                                      Pairs{{scalars, scalars}, {vectors, vectors}}));
}

Json to_itself_and_to_a_device(const Layout& l) {
  const PerReplica<Tensor> value = counted(l);
  return show(
      l.strategy().extended().batch_reduce_to(ReduceOp::kMean, Pairs{{value, value}, {value, "/cpu:0"}}));
}

}  // namespace

std::vector<Scenario> reduce_to_scenarios() {
  std::vector<Scenario> scenarios = {
      {"ext/reduce_to_string_op", [](const Layout& l) { return reduce_to_itself(l, "mean"); }},
      {"ext/reduce_to_bad_op", [](const Layout& l) { return reduce_to_itself(l, "max"); }},
      wrong_destination("empty_dest", ""),
      wrong_destination("bad_dest", "/nonsense:9"),
      {"ext/batch_reduce_to_MEAN", both_to_themselves},
      {"ext/batch_reduce_to_MEAN_mixed_dest",
       to_itself_and_to_a_device,
       {{"mirrored2 mirrored3", kOwnDestination,
         [](const Layout& l) {
           const double mean = (l.replicas() + 1) / 2.0;
           return Json{{{"Mirrored", Json(l.local_ids().size(), mean)}}, mean};
         }}}},
      {"ctx/in_replica_batch_reduce_to",
       [](const Layout& l) { return show(l.run([&](int) { return to_itself_and_to_a_device(l).dump(); })); },
       {{"default1", kDefaultInside, [](const Layout& /*l*/) { return Json("[1.0,1.0]"); }}}},
      {"ext/mirrored_value_operand",
       [](const Layout& l) {
         const PerReplica<double> value = l.each([](int r) { return r + 1.0; });
         const auto scope = l.strategy().scope();
         return show(l.strategy().extended().reduce_to(ReduceOp::kSum, value, value) + 1);
       }},
  };
  add_operator(ReduceOp::kSum, "SUM", scenarios);
  add_operator(ReduceOp::kMean, "MEAN", scenarios);
  return scenarios;
}

}  // namespace cohort::conformance
