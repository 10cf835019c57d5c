// Moving averages.
#include <cohort/train/moving_average.h>

#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

class MovingAverageCase : public Replicas {
 protected:
  static void expect(const Variable& average, double first, double second) {
    for (const Tensor& component : average.components())
      EXPECT_THAT(numbers(component), ElementsAre(DoubleNear(first, 1e-12), DoubleNear(second, 1e-12)));
  }
};
COHORT_INSTANTIATE_CASES(MovingAverageCase);

TEST_P(MovingAverageCase, Case101_FollowsTheMeanOfReplicas) {
  const Variable average = made({.initial_value = Tensor::from({10.0, 11.0})});
  strategy_.run([&](ReplicaContext& replica) {
    const int r = replica.replica_id_in_sync_group();
    assign_moving_average(average, Tensor::from({1.0 + r, 2.0 - r}), 0.25);
  });
  const double mean = (replicas() - 1) / 2.0;  // of the replicas' numbers
  expect(average, 2.5 + 0.75 * (1 + mean), 2.75 + 0.75 * (2 - mean));
}

TEST_P(MovingAverageCase, Case103_TakesTheValueAsItIsOutsideReplicas) {
  const Variable average = made({.initial_value = Tensor::from({10.0, 11.0})});
  const auto scope = strategy_.scope();
  assign_moving_average(average, Tensor::from({1.0, 2.0}), 0.25);
  expect(average, 3.25, 4.25);
  assign_moving_average(average, Tensor::from({1.0, 2.0}), 0.25);
  expect(average, 1.5625, 2.5625);
}

TEST_P(MovingAverageCase, Case104_FollowsAVariable) {
  const Variable followed =
      made({.initial_value = Tensor::scalar(1.0), .aggregation = VariableAggregation::kMean});
  const Variable average = made({.initial_value = followed.read()});
  strategy_.run([&] {
    followed.assign(0.5);
    assign_moving_average(average, followed.read(), 0.8);
  });
  for (const Tensor& component : average.components())
    EXPECT_THAT(numbers(component), ElementsAre(DoubleNear(0.9, 1e-12)));
}

}  // namespace
}  // namespace cohort::testing
