// Operators given as text.
#include "common.h"

namespace cohort::conformance {
namespace {

/// r + 1, reduced by the operator of that name.
Scenario reduced(std::string name, std::string_view op) {
  return {std::move(name), [=](const Layout& l) {
            return show(l.strategy().reduce(op, l.each([](int r) { return number(r + 1); })));
          }};
}

}  // namespace

std::vector<Scenario> operator_scenarios() {
  return {
      reduced("reduce/op_string_sum", "sum"),
      reduced("reduce/op_string_Sum", "Sum"),
      reduced("reduce/op_string_mean", "mean"),
      reduced("reduce/op_string_max", "max"),
      reduced("reduce/op_string_empty", ""),
      {"allreduce/bad_op",
       [](const Layout& l) {
         return show(
             l.strategy().run([](ReplicaContext& replica) { return replica.all_reduce("max", number(1)); }));
       }},
  };
}

}  // namespace cohort::conformance
