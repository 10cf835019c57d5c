// Gradients through collectives: the transposed calls, given the gradients of the results.
#include "common.h"

namespace cohort::conformance {
namespace {

/// Of c * all_reduce(x) for x, with c = r + 1.
Scenario through_all_reduce(std::string name, ReduceOp op) {
  return {std::move(name), [=](const Layout& l) {
            return show(l.strategy().run([&](ReplicaContext& replica) {
              return replica.all_reduce(op, number(replica.replica_id_in_sync_group() + 1));
            }));
          }};
}

/// Of the sum of w * all_gather(x) for x, with r + 1 rows of x and w = 1, 2, ...
Json through_all_gather(const Layout& l) {
  return show(l.strategy().run([](ReplicaContext& replica) {
    const Tensor x = Tensor::zeros({replica.replica_id_in_sync_group() + 1, 1}, DType::kFloat32);
    const Tensor weights = replica.all_gather(x, 0);
    float row = 0;
    for (float& weight : weights.span<float>()) weight = ++row;
    return replica.reduce_scatter(ReduceOp::kSum, weights, x, 0);
  }));
}

}  // namespace

std::vector<Scenario> gradient_scenarios() {
  return {
      through_all_reduce("allreduce/SUM_grad", ReduceOp::kSum),
      through_all_reduce("allreduce/MEAN_grad", ReduceOp::kMean),
      {"allgather/grad", through_all_gather},
  };
}

}  // namespace cohort::conformance
