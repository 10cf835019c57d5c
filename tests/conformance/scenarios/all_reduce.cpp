// `ReplicaContext::all_reduce`.
#include "common.h"

namespace cohort::conformance {
namespace {

/// The value of each replica, all-reduced.
template <class Make>
Json reduced(const Layout& l, ReduceOp op, Make make) {
  return show(l.strategy().run([&](ReplicaContext& replica) {
    return replica.all_reduce(op, make(replica.replica_id_in_sync_group()));
  }));
}

using Nest = std::tuple<Tensor, std::tuple<Tensor, std::map<std::string, Tensor>>>;

Nest nest(int r) {
  return {number(1 + 2 * r), {vector({39.0 - 36.0 * r, 2.0 + 39.0 * r}), {{"k", tensor({1.0 * r}, {1, 1})}}}};
}

}  // namespace

std::vector<Scenario> all_reduce_scenarios() {
  const std::string_view numbers = "a number is a value of its replica";
  const auto sum_of_ids = [](const Layout& l) {
    double sum = 0;
    for (int r = 0; r < l.replicas(); ++r) sum += r + 1;
    return sum;
  };
  return {
      {"allreduce/SUM_scalar",
       [](const Layout& l) { return reduced(l, ReduceOp::kSum, [](int r) { return number(r + 1); }); }},
      {"allreduce/mean_scalar",
       [](const Layout& l) { return reduced(l, ReduceOp::kMean, [](int r) { return number(r + 1); }); }},
      {"allreduce/SUM_nested", [](const Layout& l) { return reduced(l, ReduceOp::kSum, nest); }},
      {"allreduce/MEAN_nested", [](const Layout& l) { return reduced(l, ReduceOp::kMean, nest); }},
      {"allreduce/SUM_int32",
       [](const Layout& l) {
         return reduced(l, ReduceOp::kSum, [](int r) { return Tensor::scalar<std::int32_t>(r + 1); });
       }},
      {"allreduce/MEAN_int64",
       [](const Layout& l) {
         return reduced(l, ReduceOp::kMean, [](int r) { return Tensor::scalar<std::int64_t>(r + 1); });
       }},
      {"allreduce/SUM_python_number",
       [](const Layout& l) { return reduced(l, ReduceOp::kSum, [](int r) { return r + 1.0; }); },
       {{"", numbers, [=](const Layout& l) { return on_each(l, sum_of_ids(l)); }}}},
      {"allreduce/MEAN_python_number",
       [](const Layout& l) { return reduced(l, ReduceOp::kMean, [](int r) { return r + 1.0; }); },
       {{"", numbers, [=](const Layout& l) { return on_each(l, sum_of_ids(l) / l.replicas()); }}}},
      {"allreduce/SUM_python_equal",
       [](const Layout& l) { return reduced(l, ReduceOp::kSum, [](int) { return 3.0; }); },
       {{"", numbers, [](const Layout& l) { return on_each(l, 3.0 * l.replicas()); }}}},
      {"allreduce/MEAN_python_equal",
       [](const Layout& l) { return reduced(l, ReduceOp::kMean, [](int) { return 3.0; }); },
       {{"", numbers, [](const Layout& l) { return on_each(l, 3.0); }}}},
      {"allreduce/SUM_shared_tensor",
       [](const Layout& l) {
         const Tensor shared = number(3);
         return reduced(l, ReduceOp::kSum, [&](int) { return Tensor(shared); });
       },
       {{kSeveralReplicas, kSharedTensor, [](const Layout& l) { return on_each(l, 3.0 * l.replicas()); }}}},
      {"allreduce/MEAN_shared_tensor",
       [](const Layout& l) {
         const Tensor shared = number(3);
         return reduced(l, ReduceOp::kMean, [&](int) { return Tensor(shared); });
       }},
      {"allreduce/empty_list",
       [](const Layout& l) { return reduced(l, ReduceOp::kSum, [](int) { return std::vector<Tensor>(); }); },
       {{"", "an empty structure is its own sum", [](const Layout& /*l*/) { return Json::array(); }}}},
      {"allreduce/different_ops",
       [](const Layout& l) {
         return show(l.strategy().run([](ReplicaContext& replica) {
           const int r = replica.replica_id_in_sync_group();
           return replica.all_reduce(r == 0 ? ReduceOp::kSum : ReduceOp::kMean, number(r + 1));
         }));
       },
       {{"mirrored2 mirrored3 central2", "replicas that differ are an error",
         [](const Layout& /*l*/) { return an_error(); }}}},
      {"allreduce/different_structure",
       [](const Layout& l) {
         return reduced(l, ReduceOp::kSum,
                        [](int r) { return std::vector<Tensor>(r == 0 ? 1 : 2, number(r + 1)); });
       },
       {{"default1 onedevice1", "types are static", [](const Layout& /*l*/) { return Json::array({1.0}); }}}},
      {"allreduce/options",
       [](const Layout& l) {
         return show(l.strategy().run([](ReplicaContext& replica) {
           const int r = replica.replica_id_in_sync_group();
           return replica.all_reduce(ReduceOp::kSum, std::tuple(number(r), vector({1.0 * r, 1}), number(5)),
                                     {.timeout_seconds = 0,
                                      .bytes_per_pack = 4,
                                      .implementation = CommunicationImplementation::kRing});
         }));
       }},
      {"allreduce/shape_mismatch",
       [](const Layout& l) {
         return reduced(l, ReduceOp::kSum, [](int r) { return Tensor::full({r + 1}, DType::kFloat32, 1); });
       }},
      {"allreduce/zero_elements",
       [](const Layout& l) {
         return reduced(l, ReduceOp::kSum, [](int) { return Tensor::zeros({0}, DType::kFloat32); });
       }},
  };
}

}  // namespace cohort::conformance
