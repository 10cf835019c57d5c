// What is special with several workers: what begins equal, what one of them alone contributes, and what
// makes them differ.
#include <random>
#include <span>

#include "variables.h"

namespace cohort::conformance {
namespace {

constexpr VariableKind kLocal{VariableSynchronization::kOnWrite, VariableAggregation::kNone};
constexpr VariableKind kFirst{VariableSynchronization::kOnWrite, VariableAggregation::kOnlyFirstReplica};
constexpr VariableKind kSum{VariableSynchronization::kOnWrite, VariableAggregation::kSum};
constexpr VariableKind kSumOnRead{VariableSynchronization::kOnRead, VariableAggregation::kSum};
constexpr VariableKind kMeanOnRead{VariableSynchronization::kOnRead, VariableAggregation::kMean};

double own_number(const Layout& l) { return l.worker() + 1; }

/// How far a random variable is from its mean over the workers.
Json distance_of_random_variable(const Layout& l) {
  std::mt19937 random(static_cast<unsigned>(l.worker()));
  std::uniform_real_distribution<double> distribution;
  const Variable variable = make_variable(l, {.initial_value = number(distribution(random))});
  const Tensor mean = l.strategy().reduce(ReduceOp::kMean, variable.read());
  return Json(variable.read().item<double>() - mean.item<double>());
}

Json literal_sum(const Layout& l) {
  const Variable variable = make_variable(l, kSum, number(10));
  l.run([&](int) { return variable.assign(5); });
  return components(variable);
}

}  // namespace

std::vector<Scenario> variable_worker_scenarios() {
  return {
      {"mw/plain_reduce_sum",
       [](const Layout& l) { return show(l.strategy().reduce(ReduceOp::kSum, number(own_number(l)))); }},
      {"mw/plain_reduce_mean",
       [](const Layout& l) { return show(l.strategy().reduce(ReduceOp::kMean, number(own_number(l)))); }},
      {"mw/python_reduce_sum",
       [](const Layout& l) { return show(l.strategy().reduce(ReduceOp::kSum, own_number(l))); }},
      {"mw/init_broadcast",
       [](const Layout& l) {
         return components(make_variable(l, {.initial_value = number(l.worker() + 5)}));
       }},
      {"mw/random_init", distance_of_random_variable},
      {"mw/cross_assign_local",
       [](const Layout& l) {
         return components(make_variable(l, kLocal, number(10)).assign(own_number(l)));
       }},
      {"mw/onread_read_SUM", [](const Layout& l) { return show(counted_variable(l, kSumOnRead).read()); }},
      {"mw/onread_read_MEAN", [](const Layout& l) { return show(counted_variable(l, kMeanOnRead).read()); }},
      {"mw/only_first_replica_assign",
       [](const Layout& l) { return components(counted_variable(l, kFirst)); },
       {{"", kFirstOfAll, [](const Layout&) { return Json::array({1.0}); }}}},
      {"mw/none_assign", [](const Layout& l) { return components(counted_variable(l, kLocal)); }},
      {"mw/sum_literal", literal_sum},
      {"mw/broadcast_to_value",
       [](const Layout& l) {
         return show(
             l.strategy().extended().broadcast_to(number(own_number(l)), Destinations(std::span<Device>())));
       }},
      {"mw/mirrored_reduce_mean_differs",
       [](const Layout& l) {
         return show(l.strategy().reduce(ReduceOp::kMean, counted_variable(l, kLocal)));
       },
       {{"", kTensors, [](const Layout& l) { return Json(own_number(l)); }}}},
  };
}

}  // namespace cohort::conformance
