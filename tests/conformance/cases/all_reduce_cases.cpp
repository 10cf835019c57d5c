// Collectives that replicas call.
#include <utility>

#include <cohort/strategy/one_device_strategy.h>

#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;

/// 1 on replica 0, 3 on replica 1, and so on; [39, 2] on replica 0, [3, 41] on replica 1.
using Mixed = std::pair<double, std::vector<Tensor>>;
double scalar_of(int r) { return 1 + 2.0 * r; }
double first_of(int r) { return 39 - 36.0 * r; }
double second_of(int r) { return 2 + 39.0 * r; }

class AllReduceCase : public Replicas {
 protected:
  void check(SumOrMean op, double divisor) const {
    const auto results = strategy_.run([&](ReplicaContext& replica) {
      const int r = replica.replica_id_in_sync_group();
      return replica.all_reduce(op, Mixed(scalar_of(r), {Tensor::from({first_of(r), second_of(r)})}));
    });
    for_each_local(results, [&](int /*r*/, const Mixed& result) {
      EXPECT_DOUBLE_EQ(result.first, total(scalar_of) / divisor);
      EXPECT_THAT(numbers(result.second.at(0)),
                  ElementsAre(total(first_of) / divisor, total(second_of) / divisor));
    });
  }
};
COHORT_INSTANTIATE_CASES(AllReduceCase);

TEST_P(AllReduceCase, Case004_SumsStructures) { check("sum", 1); }

TEST_P(AllReduceCase, Case005_AveragesStructures) { check("mean", replicas()); }

/// What the sum over all replicas of weight(r) * mean(x) gains per unit of x on one replica.
TEST_P(AllReduceCase, Case007_HasItselfAsItsGradient) {
  const auto weight = [](int r) { return 2.0 + r; };
  const auto loss = [&](int changed, double step) {
    const auto losses = strategy_.run([&](ReplicaContext& replica) {
      const int r = replica.replica_id_in_sync_group();
      return weight(r) * replica.all_reduce(ReduceOp::kMean, r + (r == changed ? step : 0.0));
    });
    return strategy_.reduce(ReduceOp::kSum, losses);
  };
  const auto gradients = strategy_.run([&](ReplicaContext& replica) {
    return replica.all_reduce(ReduceOp::kMean, weight(replica.replica_id_in_sync_group()));
  });
  for (int changed = 0; changed < replicas(); ++changed) {
    const double slope = (loss(changed, 0.5) - loss(changed, -0.5)) / 1.0;
    EXPECT_THAT(strategy_.local_results(gradients), Each(DoubleNear(slope, 1e-12)));
  }
}

TEST(AllReduceOfOneReplica, Case008_ReturnsItsArgument) {
  const OneDeviceStrategy strategy;
  const auto results = strategy.run([](ReplicaContext& replica) {
    return replica.all_reduce(ReduceOp::kSum, Mixed(4, {Tensor::from({42.0, 43.0})}));
  });
  EXPECT_EQ(results[0].first, 4);
  EXPECT_THAT(numbers(results[0].second.at(0)), ElementsAre(42, 43));
}

class AllGatherCase : public Replicas {};
COHORT_INSTANTIATE_CASES(AllGatherCase);

TEST_P(AllGatherCase, Case073_ConcatenatesOnEveryAxis) {
  for (int axis = 0; axis < 3; ++axis) {
    const auto gathered = strategy_.run([&](ReplicaContext& replica) {
      return replica.all_gather(Tensor::full({1, 2, 2}, DType::kFloat32, replica.replica_id_in_sync_group()),
                                axis);
    });
    std::vector<std::int64_t> extents{1, 2, 2};
    const std::int64_t own = extents[static_cast<std::size_t>(axis)];
    extents[static_cast<std::size_t>(axis)] *= replicas();
    std::int64_t inner = 1;
    for (int below = axis + 1; below < 3; ++below) inner *= extents[static_cast<std::size_t>(below)];
    for_each_local(gathered, [&](int /*r*/, const Tensor& all) {
      EXPECT_EQ(all.shape(), Shape(extents));
      const std::vector<double> values = numbers(all);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t replica = static_cast<std::int64_t>(i) / inner / own % replicas();
        EXPECT_EQ(values[i], static_cast<double>(replica)) << "axis " << axis << ", element " << i;
      }
    });
  }
}

}  // namespace
}  // namespace cohort::testing
