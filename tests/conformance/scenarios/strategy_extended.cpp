// What `StrategyExtended` offers: `reduce_to`, `broadcast_to` and `update`.
#include "common.h"

namespace cohort::conformance {
namespace {

// `reduce_to` and `batch_reduce_to`: which operators and destinations they take, and where results are.

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

namespace {

// `broadcast_to`: what is copied, and where to.

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

namespace {

// `update`: the function that is called for each component of a variable, what it is given and sees.

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
