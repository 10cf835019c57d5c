// `broadcast_to`: what is copied, and where to.
#include "common.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kOneValue = "one value is broadcast";

template <class Value>
Json to_variable(const Layout& l, const Value& value) {
  const Variable variable = variable_of(l, 1);
  return show(l.strategy().extended().broadcast_to(value, variable));
}

}  // namespace

std::vector<Scenario> broadcast_to_scenarios() {
  return {
      {"ext/broadcast_to_var", [](const Layout& l) { return to_variable(l, number(3)); }},
      {"ext/broadcast_to_python_var", [](const Layout& l) { return to_variable(l, 3.0); }},
      {"ext/broadcast_to_cpu0",
       [](const Layout& l) { return show(l.strategy().extended().broadcast_to(number(3), "/cpu:0")); }},
      {"ext/broadcast_to_perreplica_var",
       [](const Layout& l) { return to_variable<Tensor>(l, counted(l)); },
       {{kSeveralReplicas, kOneValue, [](const Layout& /*l*/) { return an_error(); }},
        {"mwms2", kOneValue, [](const Layout& l) { return Json(l.worker() + 1.0); }}}},
      {"ctx/in_replica_broadcast_to",
       [](const Layout& l) {
         return show(
             l.run([&](int) { return l.strategy().extended().broadcast_to(number(3), "/cpu:0")[0]; }));
       }},
  };
}

}  // namespace cohort::conformance
