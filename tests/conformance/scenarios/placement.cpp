// Where a strategy runs replicas and keeps variables, and which variables are its own.
#include <optional>

#include <cohort/strategy/mirrored_strategy.h>

#include "common.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kNoGraph = "there is no graph to build or to initialise";
constexpr std::string_view kOwnOperations = "every strategy has cross-device operations";

Json properties(const Layout& l) {
  const StrategyExtended& extended = l.strategy().extended();
  return {l.replicas(), device_names(l, extended.worker_devices()),
          device_names(l, extended.parameter_devices()), extended.should_checkpoint(),
          extended.should_save_summary()};
}

Json expected_properties(const Layout& l) {
  const auto devices = cpu_devices(static_cast<int>(l.local_ids().size()));
  const Json workers = device_names(l, devices);
  const Json parameters =
      device_names(l, std::span(devices).first(l.prefix() == "central2" ? 1 : devices.size()));
  const bool is_chief = l.worker() == 0;
  return {l.replicas(), workers, parameters, is_chief, is_chief};
}

Json devices_beside(const Layout& l, const Variable& other) {
  const auto scope = l.strategy().scope();
  const auto colocated = l.strategy().extended().colocate_vars_with(other);
  const Variable variable({.initial_value = number(1)});
  Json names = Json::array();
  for (const Tensor& component : variable.components()) names.push_back(device_name(l, component.device()));
  return names;
}

/// Whether it was made in the strategy's scope, for variables made there, outside, and in another one's.
Json which_are_its_own(const Layout& l) {
  const Variable inside = variable_of(l, 1);
  const Variable outside({.initial_value = number(1)});
  std::optional<Variable> elsewhere;
  {
    const MirroredStrategy other(cpu_devices(1));
    const auto scope = other.scope();
    elsewhere.emplace(VariableOptions{.initial_value = number(1)});
  }
  const StrategyExtended& extended = l.strategy().extended();
  return {extended.variable_created_in_scope(inside), extended.variable_created_in_scope(outside),
          extended.variable_created_in_scope(*elsewhere)};
}

}  // namespace

std::vector<Scenario> placement_scenarios() {
  return {
      {"ctx/props",
       properties,
       {{"onedevice1 mirrored2 mirrored3 central2 mwms2", kNoGraph, expected_properties}}},
      {"ctx/require_scope",
       [](const Layout& l) {
         const Variable variable = variable_of(l, 1);
         const auto colocated = l.strategy().extended().colocate_vars_with(variable);
         return Json("ok");
       }},
      {"ext/colocate_foreign",
       [](const Layout& l) { return devices_beside(l, Variable({.initial_value = number(1)})); }},
      {"ext/created_in_scope",
       which_are_its_own,
       {{"default1", "the default strategy's scope is open already",
         [](const Layout& /*l*/) {
           return Json{true, true, false};
         }}}},
      {"ext/value_container",
       [](const Layout& l) {
         const Variable variable = variable_of(l, 1);
         return Json(l.strategy().extended().value_container(variable.components()[0]) == variable);
       },
       {{"default1", "a plain variable has no container", [](const Layout& /*l*/) { return Json(false); }}}},
      {"ext/value_container_identity",
       [](const Layout& l) { return Json(!l.strategy().extended().value_container(number(1)).has_value()); }},
      {"ext/cross_device_ops",
       [](const Layout& l) { return Json(l.strategy().extended().cross_device_ops().name()); },
       {{"default1 onedevice1", kOwnOperations,
         [](const Layout& /*l*/) { return Json("CollectiveAllReduce"); }},
        {"central2", kOwnOperations, [](const Layout& /*l*/) { return Json("ReductionToOneDevice"); }}}},
      {"reduce/device",
       [](const Layout& l) {
         return device_name(l, l.strategy().reduce(ReduceOp::kSum, counted(l)).device());
       }},
  };
}

}  // namespace cohort::conformance
