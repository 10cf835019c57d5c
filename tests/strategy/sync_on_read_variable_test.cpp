// ON_READ variables: replicas write their own component, reads outside aggregate them.
#include <gmock/gmock.h>

#include "strategies.h"
#include "variables.h"

namespace cohort::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class SyncOnRead : public WithReplicas {
 protected:
  [[nodiscard]] Variable ten(VariableAggregation aggregation, DType dtype = DType::kFloat64) const {
    return variable_in(strategy_, {.name = "v",
                                   .initial_value = Tensor::full({}, dtype, 10),
                                   .synchronization = VariableSynchronization::kOnRead,
                                   .aggregation = aggregation});
  }
  /// A variable to which replica r has assigned r+1.
  [[nodiscard]] Variable counted(VariableAggregation aggregation) const {
    Variable variable = ten(aggregation);
    strategy_.run(
        [&](ReplicaContext& replica) { variable.assign(replica.replica_id_in_sync_group() + 1.0); });
    return variable;
  }
  [[nodiscard]] static double mean() { return (replicas() + 1) / 2.0; }
};
COHORT_INSTANTIATE_REPLICAS(SyncOnRead);

TEST_P(SyncOnRead, IsWrittenByEachReplicaAlone) {
  for (const VariableAggregation aggregation : kAllAggregations) {
    const Variable variable = ten(aggregation);
    strategy_.run([&](ReplicaContext& replica) {
      const double mine = replica.replica_id_in_sync_group() + 1.0;
      EXPECT_EQ(variable.assign(mine).read().item<double>(), mine);
      variable.assign_add(10.0);
      if (replica.replica_id_in_sync_group() == 0) variable.assign_sub(5.0);  // no other replica takes part
    });
    for (int id = 0; id < replicas(); ++id)
      EXPECT_EQ(components(variable)[static_cast<std::size_t>(id)], id + 11 - (id == 0 ? 5 : 0));
  }
}

TEST_P(SyncOnRead, IsReadOutsideReplicasAsTheAggregate) {
  const auto expect_read = [&](VariableAggregation aggregation, double value) {
    const Variable variable = counted(aggregation);
    EXPECT_EQ(variable.read().item<double>(), value) << "outside any scope";
    const auto scope = strategy_.scope();
    EXPECT_EQ(variable.read().item<double>(), value) << "inside scope()";
    strategy_.run([&](ReplicaContext& replica) {
      EXPECT_EQ(variable.read().item<double>(), replica.replica_id_in_sync_group() + 1) << "its own";
      replica.merge_call([&](const Strategy&) { EXPECT_EQ(variable.read().item<double>(), value); });
    });
    strategy_.extended().update(variable, [](const Variable& v) {
      EXPECT_EQ(v.read().item<double>(), *get_update_replica_id() + 1) << "its own";
    });
  };
  expect_read(VariableAggregation::kSum, sum_to(replicas()));
  expect_read(VariableAggregation::kMean, mean());
  expect_read(VariableAggregation::kOnlyFirstReplica, 1);
}

TEST_P(SyncOnRead, IsReadAsACopy) {
  for (const auto aggregation : {VariableAggregation::kSum, VariableAggregation::kOnlyFirstReplica}) {
    const Variable variable = ten(aggregation);
    variable.read().fill(0);
    EXPECT_THAT(components(variable), Each(10));
  }
}

TEST_P(SyncOnRead, WithoutAggregationIsWrittenOutsideReplicasButCannotBeReturned) {
  const Variable variable = ten(VariableAggregation::kNone);
  const auto no_value = ThrowsMessage<WrongContext>(HasSubstr("has no value to return"));
  EXPECT_THAT([&] { variable.assign(6.0); }, no_value);
  EXPECT_THAT(components(variable), Each(6));
  EXPECT_THAT([&] { variable.assign_add(2.0); }, no_value);
  EXPECT_THAT(components(variable), Each(8));
}

TEST_P(SyncOnRead, OfAnIntegerSumLosesNothing) {
  for (const DType dtype : {DType::kInt32, DType::kInt8, DType::kUInt64}) {
    const Variable variable = ten(VariableAggregation::kSum, dtype);
    for (const int value : {7, 6, 0, 100}) {
      EXPECT_EQ(variable.assign(value).read().item<int>(), value);
      EXPECT_EQ(components(variable)[static_cast<std::size_t>(last())],
                value / replicas() + (last() == 0 ? value % replicas() : 0));
    }
  }
  EXPECT_EQ(ten(VariableAggregation::kSum, DType::kInt32).assign(-7).read().item<int>(), -7);
}

TEST_P(SyncOnRead, OfTheFirstReplicaIsAssignedEverywhere) {
  const Variable variable = counted(VariableAggregation::kOnlyFirstReplica);
  EXPECT_EQ(variable.assign_add(2.0).read().item<double>(), 3);
  EXPECT_EQ(components(variable).back(), replicas() + 2);
  variable.assign(6.0);
  EXPECT_THAT(components(variable), Each(6));
}

TEST_P(SyncOnRead, TakesNoPerReplicaValueOutsideReplicas) {
  const auto values = per_replica(strategy_, [](int id) { return Tensor::scalar(id + 1.0); });
  for (const VariableAggregation aggregation : kAllAggregations) {
    const Variable variable = ten(aggregation);
    const auto scope = strategy_.scope();
    EXPECT_THROW(variable.assign(values), WrongContext);
    EXPECT_THAT(components(variable), Each(10));
    strategy_.run([&] { variable.assign(values); });
    EXPECT_EQ(components(variable).back(), replicas());
  }
}

TEST_P(SyncOnRead, IsUpdatedWithWhateverEachComponentGets) {
  for (const VariableAggregation aggregation : kAllAggregations) {
    const Variable variable = ten(aggregation);
    strategy_.extended().update(
        variable, [](const Variable& v, const Tensor& value) { v.assign_sub(value); },
        per_replica(strategy_, [](int id) { return Tensor::scalar(id + 1.0); }));
    EXPECT_EQ(components(variable).back(), 10 - replicas());
  }
}

TEST_P(SyncOnRead, HasNoUpdatesOfRows) {
  const Variable variable = variable_in(strategy_, {.shape = {3},
                                                    .synchronization = VariableSynchronization::kOnRead,
                                                    .aggregation = VariableAggregation::kSum});
  const IndexedSlices rows{Tensor::from({1.0f}), Tensor::from({0}), {3}};
  const auto refused =
      ThrowsMessage<Unimplemented>(HasSubstr("ON_READ variables do not take updates of rows"));
  EXPECT_THAT([&] { variable.scatter_add(rows); }, refused);
  EXPECT_THAT([&] { variable.scatter_update(rows); }, refused);
  EXPECT_THAT([&] { strategy_.run([&] { variable.scatter_max(rows); }); }, refused);
}

TEST_P(SyncOnRead, NeedsAFloatingDtypeForAMean) {
  EXPECT_THAT([&] { return ten(VariableAggregation::kMean, DType::kInt32); },
              ThrowsMessage<InvalidArgument>(HasSubstr("floating dtype")));
}

}  // namespace
}  // namespace cohort::testing
