// `run`: arguments, results, errors, and what works after a call that failed.
#include <sstream>

#include "common.h"

namespace cohort::conformance {
namespace {

// `run`: arguments, results, errors.

/// [kind, components] of values that are one tensor for all replicas.
Json values_of_one_object(const Layout& l) {
  const Tensor shared = vector({1, 2});
  const auto make = [&](ValueContext) { return Tensor(shared); };
  const PerReplica<Tensor> values = l.strategy().distribute_values_from_function(make);
  const std::string kind(PerReplica<Tensor>::kName);
  return {kind, {{kind, show(l.strategy().local_results(values))}}};
}

}  // namespace

std::vector<Scenario> run_scenarios() {
  return {
      {"run/replica_id", [](const Layout& l) { return show(l.run([](int r) { return number(r); })); }},
      {"run/num_replicas",
       [](const Layout& l) {
         const PerReplica<int> seen =
             l.strategy().run([](ReplicaContext& replica) { return replica.num_replicas_in_sync(); });
         return Json{seen[0], l.strategy().num_replicas_in_sync()};
       }},
      {"run/none", [](const Layout& l) { return show(l.run([](int) { return None(); })); }},
      {"run/same_py_object",
       [](const Layout& l) { return show(l.run([](int) { return std::string("abc"); })); },
       {{kSeveralReplicas, kIdentity, [](const Layout& l) { return on_each(l, "abc"); }}}},
      {"run/python_int_equal",
       [](const Layout& l) { return show(l.run([](int) { return 5; })); },
       {{kSeveralReplicas, kIdentity, [](const Layout& l) { return on_each(l, 5); }}}},
      {"run/python_int_diff", [](const Layout& l) { return show(l.run([](int r) { return r + 1; })); }},
      {"run/python_float_fresh", [](const Layout& l) { return show(l.run([](int) { return 1.5; })); }},
      {"run/captured_tensor",
       [](const Layout& l) {
         const Tensor captured = Tensor::from({1.F, 2.F});
         return show(l.run([&](int) { return Tensor(captured); }));
       },
       {{kSeveralReplicas, kIdentity,
         [](const Layout& l) {
           return on_each(l, {1.0, 2.0});
         }}}},
      {"run/tuple",
       [](const Layout& l) {
         return show(l.run([](int r) {
           return std::tuple(number(r), None(), std::string("x"),
                             std::map<std::string, Tensor>{{"k", number(r * 2)}},
                             std::vector<Tensor>{number(r), number(r + 1)});
         }));
       },
       {{kSeveralReplicas, kIdentity,
         [](const Layout& l) {
           const PerReplica<double> ids = l.each([](int r) { return static_cast<double>(r); });
           return Json{show(ids),
                       nullptr,
                       on_each(l, "x"),
                       {{"k", show(l.each([](int r) { return 2.0 * r; }))}},
                       {show(ids), show(l.each([](int r) { return r + 1.0; }))}};
         }}}},
      {"run/tuple_len_mismatch",
       [](const Layout& l) {
         const auto lists = l.run([](int r) {
           std::vector<Tensor> list;
           for (int i = 0; i <= r; ++i) list.push_back(number(i));
           return list;
         });
         if (lists.size() == 1) return show(lists[0]);
         return show(l.strategy().reduce(ReduceOp::kSum, lists));
       }},
      {"run/none_on_some",
       [](const Layout& l) {
         return show(l.run([](int r) { return r == 0 ? std::optional<Tensor>() : number(r); }));
       }},
      {"run/tensor_on_first",
       [](const Layout& l) {
         return show(l.run([](int r) { return r == 0 ? std::optional(number(9)) : std::nullopt; }));
       }},
      {"run/args_perreplica",
       [](const Layout& l) {
         return show(l.strategy().run([](float x) { return x * 10.0; },
                                      l.each([](int r) { return static_cast<float>(r + 1); })));
       }},
      {"run/args_plain",
       [](const Layout& l) {
         const Tensor shared = number(3);
         return show(l.strategy().run(
             [](ReplicaContext& replica, const Tensor& x) {
               return x.item<float>() + static_cast<double>(replica.replica_id_in_sync_group());
             },
             shared));
       }},
      {"run/args_nested",
       [](const Layout& l) {
         const PerReplica<double> ids = l.each([](int r) { return 1.0 * r; });
         return show(l.strategy().run(
             [](const std::map<std::string, double>& a, const std::tuple<double, double>& b, double k) {
               return std::map<std::string, double>{
                   {"o", a.at("a") + std::get<0>(b) * std::get<1>(b) + std::get<1>(b) + 100 * k}};
             },
             std::map<std::string, PerReplica<double>>{{"a", ids}}, std::tuple(ids, 3.0), ids));
       }},
      {"run/in_run",
       [](const Layout& l) { return show(l.run([&](int) { return l.run([](int r) { return r; })[0]; })); },
       {{"default1", kDefaultInside, [](const Layout& /*l*/) { return Json(0); }}}},
      {"run/values_from_function_same",
       values_of_one_object,
       {{"default1 onedevice1", kAlwaysPerReplica,
         [](const Layout& /*l*/) {
           return Json{"PerReplica", {{"PerReplica", Json::array({{1.0, 2.0}})}}};
         }}}},
      {"run/perreplica_repr",
       [](const Layout& l) {
         std::ostringstream text;
         text << l.each([](int r) { return r + 1; });
         return Json(text.str());
       },
       {{"default1 onedevice1", kAlwaysPerReplica,
         [](const Layout& /*l*/) { return Json("PerReplica:{ 0: 1 }"); }}}},
      {"run/perreplica_operand_outside",
       [](const Layout& l) {
         const auto scope = l.strategy().scope();
         return show(l.each([](int r) { return r + 1.0; }).local() + 1.0);
       },
       {{"default1", kAlwaysPerReplica, [](const Layout& /*l*/) { return Json(2.0); }},
        {"onedevice1", kAlwaysPerReplica, [](const Layout& /*l*/) { return an_error(); }}}},
      {"run/local_results",
       [](const Layout& l) {
         const Strategy& strategy = l.strategy();
         return Json{show(strategy.local_results(number(3))),
                     show(strategy.local_results(l.each([](int r) { return r; }))),
                     show(strategy.local_results(l.each([](int r) {
                       return std::map<std::string, int>{{"a", r}, {"b", 5}};
                     }))),
                     show(strategy.local_results(l.each([](int) {
                       return std::vector<int>{1, 2};
                     }))),
                     show(strategy.local_results(None()))};
       }},
  };
}

namespace {

// What works after a call that failed, or that was odd: `iso_<call>/<what is done afterwards>`.

struct OddCall {
  std::string_view name;
  bool poisons;  ///< all collectives that the original's process makes afterwards
  std::function<void(const Layout&)> make;
};

Tensor of_shape(const Shape& shape) { return Tensor::full(shape, DType::kFloat32, 1); }

std::vector<OddCall> odd_calls() {
  const auto gathered = [](int axis, const std::function<Tensor(int)>& make) {
    return [=](const Layout& l) { static_cast<void>(l.strategy().gather(l.each(make), axis)); };
  };
  const auto reduced = [](const std::function<Tensor(int)>& make) {
    return [=](const Layout& l) { static_cast<void>(l.strategy().reduce(ReduceOp::kSum, l.each(make))); };
  };
  const auto all_reduced = [](const std::function<Tensor(int)>& make) {
    return [=](const Layout& l) {
      l.strategy().run([&](ReplicaContext& replica) {
        static_cast<void>(replica.all_reduce(ReduceOp::kSum, make(replica.replica_id_in_sync_group())));
      });
    };
  };
  return {
      {"gather_scalar", false, gathered(0, [](int r) { return number(r); })},
      {"gather_axis_range", false, gathered(1, [](int r) { return vector({1.0 * r}); })},
      {"gather_dim", true,
       gathered(0,
                [](int r) {
                  return of_shape({1, r + 1});
                })},
      {"gather_rank", true,
       gathered(0,
                [](int r) {
                  return r == 0 ? of_shape({1}) : of_shape({1, 1});
                })},
      {"gather_bool", false, gathered(0, [](int r) { return Tensor::from({r == 0}); })},
      {"reduce_shape", false, reduced([](int r) { return of_shape({r + 1}); })},
      {"reduce_dtype", false,
       reduced([](int r) { return number(1).cast(r == 0 ? DType::kFloat32 : DType::kFloat64); })},
      {"reduce_bool", false, reduced([](int) { return Tensor::scalar(true); })},
      {"allreduce_shape", true, all_reduced([](int r) { return of_shape({r + 1}); })},
      {"allreduce_zero", false, all_reduced([](int) { return of_shape({0}); })},
      {"allgather_rank", true,
       [](const Layout& l) {
         l.strategy().run([](ReplicaContext& replica) {
           const bool first = replica.replica_id_in_sync_group() == 0;
           static_cast<void>(replica.all_gather(first ? of_shape({1}) : of_shape({1, 1}), 0));
         });
       }},
  };
}

void make_odd_call(const OddCall& call, const Layout& l) {
  try {
    call.make(l);
  } catch (const Error&) {
    // The other groups of lines say what it ends in.
  }
}

}  // namespace

std::vector<Scenario> afterwards_scenarios() {
  std::vector<Scenario> scenarios;
  for (const OddCall& call : odd_calls()) {
    const std::string group = "iso_" + std::string(call.name);
    std::vector<Difference> recovers;
    if (call.poisons)
      recovers = {{"", "an error in one process does not outlive its call", [](const Layout& l) {
                     return on_each(l, {2.0, 2.0, 2.0});
                   }}};
    scenarios.push_back({group + "/all_reduce_afterwards",
                         [call](const Layout& l) {
                           make_odd_call(call, l);
                           return show(l.strategy().run([](ReplicaContext& replica) {
                             return replica.all_reduce(ReduceOp::kSum, of_shape({3}));
                           }));
                         },
                         recovers});
    scenarios.push_back({group + "/reduce_afterwards", [call](const Layout& l) {
                           make_odd_call(call, l);
                           return show(
                               l.strategy().reduce(ReduceOp::kSum, l.each([](int) { return number(1); })));
                         }});
  }
  return scenarios;
}

}  // namespace cohort::conformance
