// `update`: the function that is called for each component of a variable, what it is given and sees.
#include "common.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kNumbered = "an update has the number of its component";

void add(const Variable& variable, const Tensor& value) { variable.assign_add(value); }

Tensor doubled(const Variable& /*variable*/, const Tensor& value) { return number(2 * value.item<double>()); }

Mirrored<Tensor> update_with_result(const Layout& l) {
  return l.strategy().extended().update(variable_of(l, 1), doubled, counted(l));
}

/// The components of a variable that every replica has updated.
Json updated_by_replicas(const Layout& l, const std::function<void(const Variable&, int r)>& update) {
  const Variable variable = variable_of(l, 1);
  l.run([&](int r) {
    update(variable, r);
    return None();
  });
  return show_components(variable);
}

/// What each call of the function sees: its context, and the number of its component.
Json seen_by_update(const Layout& l) {
  Json seen = Json::array();
  l.strategy().extended().update(variable_of(l, 1), [&](const Variable&) {
    Json context = state(l);
    context.push_back(show(get_update_replica_id()));
    seen.push_back(context);
  });
  return seen;
}

Json like_an_optimizer(const Layout& l) {
  const Variable variable = variable_of(l, 10);
  l.strategy().run([&](ReplicaContext& replica) {
    replica.merge_call(
        [&](const Strategy& strategy, const PerReplica<double>& gradients) {
          const auto gradient = strategy.extended().reduce_to(ReduceOp::kSum, gradients, variable);
          strategy.extended().update(
              variable, [](const Variable& v, double g) { v.assign_sub(0.1 * g); }, gradient);
        },
        2.0 * (replica.replica_id_in_sync_group() + 1));
  });
  return show_components(variable);
}

}  // namespace

std::vector<Scenario> update_scenarios() {
  return {
      {"ctx/update",
       seen_by_update,
       {{"default1", kNumbered,
         [](const Layout& /*l*/) {
           return Json::array({Json{"_DefaultDistributionStrategy", false, Json{"_DefaultReplicaContext", 0},
                                    false, nullptr}});
         }},
        {"onedevice1 central2", kNumbered,
         [](const Layout& l) {
           return Json::array({Json{class_of(l, l.strategy()), true, nullptr, true, 0}});
         }}}},
      {"ctx/in_replica_update",
       [](const Layout& l) {
         const Json components = updated_by_replicas(l, [&](const Variable& variable, int /*r*/) {
           l.strategy().extended().update(variable, add, number(1));
         });
         Json list = Json::array();
         for (const Json& component : components) list.push_back({{"Variable", component}});
         return list;
       }},
      {"ext/update_add",
       [](const Layout& l) {
         const Variable variable = variable_of(l, 1);
         l.strategy().extended().update(variable, add, counted(l));
         return Json{show(std::vector{None()}), show_components(variable)};
       }},
      {"ext/update_mirrored_arg",
       [](const Layout& l) {
         const Variable variable = variable_of(l, 1);
         const auto sum = l.strategy().extended().reduce_to(ReduceOp::kSum, counted(l), variable);
         l.strategy().extended().update(variable, add, sum);
         return show_components(variable);
       }},
      {"ext/update_return_group_false",
       [](const Layout& l) { return show(l.strategy().local_results(update_with_result(l))); }},
      {"ext/update_return_group_true", [](const Layout& l) { return show(update_with_result(l)); }},
      {"ext/update_plain_variable",
       [](const Layout& l) {
         const Variable plain({.initial_value = number(1)});
         l.strategy().extended().update(plain, add, number(1));
         return Json::array({Json{{"Variable", show(plain.read())}}});
       }},
      {"ext/update_in_replica",
       [](const Layout& l) {
         return updated_by_replicas(l, [&](const Variable& variable, int r) {
           l.strategy().extended().update(variable, add, number(r + 1));
         });
       }},
      {"ext/assign_in_replica_ctx_update_method",
       [](const Layout& l) {
         const PerReplica<Tensor> values = counted(l);
         return updated_by_replicas(l, [&](const Variable& variable, int /*r*/) {
           get_replica_context()->strategy().extended().update(variable, add, values);
         });
       }},
      {"ext/update_assigns_other",
       [](const Layout& l) {
         const Variable updated = variable_of(l, 0);
         const Variable other = variable_of(l, 0);
         l.strategy().extended().update(
             updated, [&](const Variable&, const Tensor& value) { other.assign(value); }, counted(l));
         return Json{show_components(updated), show_components(other)};
       }},
      {"ext/optimizer_like", like_an_optimizer},
      {"ext/update_non_slot",
       [](const Layout& l) {
         StrategyExtended& extended = l.strategy().extended();
         return show(l.strategy().local_results(
             extended.update_non_slot(extended.non_slot_devices(), [] { return 1.0; })));
       }},
  };
}

}  // namespace cohort::conformance
