// Moving averages in every context.
#include <cohort/train/moving_average.h>

#include <limits>
#include <string>

#include <gmock/gmock.h>

#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/one_device_strategy.h>

#include "../strategy/strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class MovingAverage : public WithReplicas {
 protected:
  [[nodiscard]] static double mean() { return (replicas() - 1) / 2.0; }
};
COHORT_INSTANTIATE_REPLICAS(MovingAverage);

TEST_P(MovingAverage, FollowsTheMeanOfReplicasWhateverTheAggregation) {
  for (const VariableAggregation aggregation : kAllAggregations) {
    const Variable average =
        variable_in(strategy_, {.initial_value = Tensor::scalar(8.0), .aggregation = aggregation});
    strategy_.run([&](ReplicaContext& replica) {
      assign_moving_average(average, Tensor::scalar(1.0 * replica.replica_id_in_sync_group()), 0.75);
    });
    EXPECT_THAT(components(average), Each(6 + mean() / 4)) << to_string(aggregation);
  }
}

TEST_P(MovingAverage, IsKeptInOneCopyToo) {
  const CentralStorageStrategy strategy(cpu_devices(replicas()));
  const Variable average = variable_in(strategy, {.initial_value = Tensor::scalar(8.0)});
  strategy.run([&](ReplicaContext& replica) {
    assign_moving_average(average, Tensor::scalar(1.0 * replica.replica_id_in_sync_group()), 0.75);
  });
  EXPECT_THAT(components(average), ElementsAre(6 + mean() / 4));
}

TEST_P(MovingAverage, ChangesOneComponentInsideAnUpdate) {
  const Variable average = variable_in(strategy_, {.initial_value = Tensor::scalar(8.0)});
  strategy_.extended().update(average, [](const Variable& v) {
    assign_moving_average(v, Tensor::scalar(1.0 * *get_update_replica_id()), 0.5);
  });
  for (int id = 0; id < replicas(); ++id) EXPECT_THAT(component(average, id), ElementsAre(4 + id / 2.0));
}

TEST_P(MovingAverage, ChangesEveryComponentOutsideReplicas) {
  const Variable average = variable_in(strategy_, {.initial_value = Tensor::scalar(8.0F)});
  assign_moving_average(average, Tensor::scalar(2), 0.5);
  const auto scope = strategy_.scope();
  assign_moving_average(average, Tensor::scalar(1.0), 0.5);
  EXPECT_THAT(components(average), Each(3));
  EXPECT_THAT(components(average), SizeIs(replicas()));
}

TEST_P(MovingAverage, OutsideReplicasFollowsInEachPartOfAnOnReadVariable) {
  for (const auto aggregation : {VariableAggregation::kMean, VariableAggregation::kNone}) {
    const Variable average = variable_in(strategy_, {.initial_value = Tensor::scalar(8.0),
                                                     .synchronization = VariableSynchronization::kOnRead,
                                                     .aggregation = aggregation});
    strategy_.run([&](ReplicaContext& replica) { average.assign(8.0 * replica.replica_id_in_sync_group()); });
    const auto scope = strategy_.scope();
    assign_moving_average(average, Tensor::scalar(2.0), 0.5);
    for (int id = 0; id < replicas(); ++id) EXPECT_THAT(component(average, id), ElementsAre(4 * id + 1));
  }
}

TEST_P(MovingAverage, OutsideAnyScopeFollowsAsInTheScopeOfItsStrategy) {
  for (const auto synchronization : {VariableSynchronization::kOnWrite, VariableSynchronization::kOnRead}) {
    const Variable average =
        variable_in(strategy_, {.initial_value = Tensor::scalar(8.0), .synchronization = synchronization});
    strategy_.run([&](ReplicaContext& replica) { average.assign(8.0 * replica.replica_id_in_sync_group()); });
    assign_moving_average(average, Tensor::scalar(2.0), 0.5);
    for (int id = 0; id < replicas(); ++id) EXPECT_THAT(component(average, id), ElementsAre(4 * id + 1));
  }
}

TEST_P(MovingAverage, ThatAReplicaCannotMakeEndsAll) {
  const int last = replicas() - 1;
  const Variable average = variable_in(strategy_, {.initial_value = Tensor::scalar(8.0)});
  strategy_.run([&](ReplicaContext& replica) {
    if (replica.replica_id_in_sync_group() == last) {
      EXPECT_THROW(assign_moving_average(average, Tensor::from({1.0, 2.0}), 0.5), InvalidArgument);
    } else {
      EXPECT_THAT([&] { assign_moving_average(average, Tensor::scalar(1.0), 0.5); },
                  ThrowsMessage<Aborted>(
                      ContainsRegex("replica " + std::to_string(last) + " \\(worker 0, .*\\) failed first")));
    }
  });
}

const VariableOptions kSumOfParts{.name = "parts",
                                  .initial_value = Tensor::scalar(8.0),
                                  .synchronization = VariableSynchronization::kOnRead,
                                  .aggregation = VariableAggregation::kSum};

TEST(MovingAverageOfASum, IsThatOfTheOnlyCopy) {
  const CentralStorageStrategy central(cpu_devices(2));
  const Variable one_copy = variable_in(central, kSumOfParts);
  central.run([&](ReplicaContext& replica) {
    assign_moving_average(one_copy, Tensor::scalar(1.0 * replica.replica_id_in_sync_group()), 0.5);
  });
  EXPECT_THAT(components(one_copy), ElementsAre(4.25));
  for (const Variable& alone : {Variable(kSumOfParts), variable_in(OneDeviceStrategy(), kSumOfParts)}) {
    assign_moving_average(alone, Tensor::scalar(0.0), 0.5);
    EXPECT_THAT(components(alone), ElementsAre(4));
  }
}

TEST(MovingAverageArguments, MustFit) {
  const Variable average({.shape = {2}, .name = "m"});
  for (const double decay : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(
        [&] {
          assign_moving_average(average, Tensor::from({1.0F, 2.0F}), decay);
        },
        ThrowsMessage<InvalidArgument>(HasSubstr("'m': the decay is")));
  }
  EXPECT_THAT([&] { assign_moving_average(average, Tensor::scalar(1.0), 0.5); },
              ThrowsMessage<InvalidArgument>(HasSubstr("'m' of float32[2]: it cannot follow float64[]")));
  const Variable parts = variable_in(mirrored(2), kSumOfParts);
  EXPECT_THAT([&] { assign_moving_average(parts, Tensor::scalar(1.0), 0.5); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("'parts'"), HasSubstr("mean"))));
  const Variable counter({.dtype = DType::kInt64});
  EXPECT_THROW(assign_moving_average(counter, Tensor::scalar(1.0), 0.5), InvalidArgument);
}

}  // namespace
}  // namespace cohort::testing
