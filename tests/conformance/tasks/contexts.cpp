// Which strategy and which context a function sees.
#include "../scenarios/common.h"
#include "coordinated.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kOutside = "a function runs outside any scope";

template <auto kFunction>
Family seen(Coordinated& cluster, std::string_view pattern, std::vector<FamilyDifference> differences = {}) {
  return line(
      cluster, pattern, [](Coordinated& c) { return show(c.coordinator().schedule<kFunction>().fetch()); },
      std::move(differences));
}

FamilyDifference instead(std::string_view pattern, std::string_view why, const Json& outcome) {
  return {pattern, why, [outcome](const Record& /*record*/) { return outcome; }};
}

Tensor in_replica(const std::function<Tensor(ReplicaContext&)>& function) {
  return get_strategy().run([&](ReplicaContext& replica) { return function(replica); }).components().front();
}

Tensor reduced(ReduceOp op) { return get_strategy().reduce(op, PerReplica(std::vector{vector({1, 2})}), 0); }

}  // namespace

std::vector<Family> context_families(Coordinated& cluster) {
  return {
      seen<[] { return get_replica_context() != nullptr; }>(
          cluster, "*/ctx_replica_context", {instead("*/ctx_replica_context", kOutside, true)}),
      seen<[] { return has_strategy(); }>(cluster, "*/ctx_has_strategy",
                                          {instead("*/ctx_has_strategy", kOutside, false)}),
      seen<[] { return in_cross_replica_context(); }>(cluster, "*/ctx_in_cross_replica",
                                                      {instead("*/ctx_in_cross_replica", kOutside, false)}),
      seen<[] {
        return in_replica([](ReplicaContext& r) { return Tensor::scalar(r.replica_id_in_sync_group()); });
      }>(cluster, "*/ctx_run_replica_id"),
      seen<[] {
        return in_replica([](ReplicaContext& r) { return Tensor::scalar(r.num_replicas_in_sync()); });
      }>(cluster, "*/ctx_run_num"),
      seen<[] {
        return in_replica([](ReplicaContext& r) { return r.all_reduce(ReduceOp::kSum, number(3)); });
      }>(cluster, "*/ctx_run_all_reduce_sum"),
      seen<[] {
        return in_replica([](ReplicaContext& r) {
          return r.merge_call(
              [](const Strategy&, const PerReplica<Tensor>& x) {
                return number(x.components().front().item<float>() + 1);
              },
              number(3));
        });
      }>(cluster, "*/ctx_run_merge_call"),
      seen<[] { return reduced(ReduceOp::kSum); }>(cluster, "*/ctx_reduce_sum_axis0"),
      seen<[] { return reduced(ReduceOp::kMean); }>(cluster, "*/ctx_reduce_mean"),
      seen<[] {
        const auto values = get_strategy().run([](ReplicaContext&) { return number(2); });
        return get_strategy().local_results(values);
      }>(cluster, "*/ctx_local_results"),
      seen<[] {
        return in_replica(
            [](ReplicaContext&) { return in_replica([](ReplicaContext&) { return number(1); }); });
      }>(cluster, "*/ctx_nested_run", {instead("*/ctx_nested_run", kDefaultInside, 1.0)}),
      line(cluster, "*/ctx_read_var",
           [](Coordinated& c) {
             constexpr auto kRead = [](const Variable& variable) { return variable.read(); };
             return show(c.coordinator().schedule<kRead>(c.numbers).fetch());
           }),
      line(cluster, "*/ctx_worker_index_in_range",
           [](Coordinated& c) {
             constexpr auto kIndex = [](const InputContext& worker) { return worker.input_pipeline_id; };
             return Json(c.coordinator().schedule<kIndex>().fetch() < c.workers());
           }),
  };
}

}  // namespace cohort::conformance
