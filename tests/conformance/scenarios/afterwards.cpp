// What works after a call that failed, or that was odd: `iso_<call>/<what is done afterwards>`.
#include "common.h"

namespace cohort::conformance {
namespace {

struct OddCall {
  std::string_view name;
  bool poisons;  ///< all collectives that the original's process makes afterwards
  std::function<void(const Layout&)> make;
};

Tensor of_shape(Shape shape) { return Tensor::full(std::move(shape), DType::kFloat32, 1); }

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
