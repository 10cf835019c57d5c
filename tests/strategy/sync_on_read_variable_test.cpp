// Variables whose values are aggregated: when they are read, or before they are updated.
#include <gmock/gmock.h>

#include <cohort/collective/thread_communicator.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

// ON_READ variables: replicas write their own component, reads outside aggregate them.

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
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

// One copy of a variable for several replicas: they read it, and their updates are
// aggregated before they are applied once.

class SingleCopy : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static int replicas() { return GetParam(); }

  [[nodiscard]] Variable ten(VariableAggregation aggregation, DType dtype = DType::kFloat64) const {
    return variable_in(
        strategy_, {.name = "v", .initial_value = Tensor::full({}, dtype, 10), .aggregation = aggregation});
  }

  const Strategy strategy_{
      StrategyExtended::make({.name = "SingleCopyStrategy",
                              .devices = cpu_devices(GetParam()),
                              .parameter_device = Device::cpu(9),
                              .connect = [] { return make_thread_communicators(GetParam(), kPatient); }})};
};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(SingleCopy);

TEST_P(SingleCopy, LiesOnTheParameterDevice) {
  const Variable variable = ten(VariableAggregation::kSum);
  ASSERT_THAT(variable.components(), SizeIs(1));
  EXPECT_EQ(variable.components()[0].device(), Device::cpu(9));
  EXPECT_EQ(variable.component_name(0), "v");
  EXPECT_THAT(strategy_.extended().parameter_devices(), ElementsAre(Device::cpu(9)));
}

TEST_P(SingleCopy, IsReadByEveryReplicaWithoutACopy) {
  const Variable variable = ten(VariableAggregation::kNone);
  strategy_.run([&] { EXPECT_EQ(variable.read().data(), variable.components()[0].data()); });
  EXPECT_NE(variable.read().data(), variable.components()[0].data());
}

TEST_P(SingleCopy, AppliesTheAggregateOnce) {
  const auto after = [&](VariableAggregation aggregation) {
    const Variable variable = ten(aggregation);
    const auto seen = strategy_.run([&](ReplicaContext& replica) {
      return variable.assign_add(replica.replica_id_in_sync_group() + 1.0).read().item<double>();
    });
    EXPECT_THAT(seen.components(), Each(components(variable)[0])) << "all replicas see the result";
    return components(variable)[0];
  };
  EXPECT_EQ(after(VariableAggregation::kSum), 10 + sum_to(replicas()));
  EXPECT_EQ(after(VariableAggregation::kMean), 10 + (replicas() + 1) / 2.0);
  EXPECT_EQ(after(VariableAggregation::kOnlyFirstReplica), 11);
}

TEST_P(SingleCopy, AggregatesLikeAnyKindOfVariable) {
  for (const auto synchronization : {VariableSynchronization::kNone, VariableSynchronization::kOnRead}) {
    const Variable variable = variable_in(strategy_, {.initial_value = Tensor::scalar(10.0),
                                                      .synchronization = synchronization,
                                                      .aggregation = VariableAggregation::kSum});
    EXPECT_EQ(variable.synchronization(), synchronization);
    strategy_.run(
        [&](ReplicaContext& replica) { variable.assign(replica.replica_id_in_sync_group() + 1.0); });
    EXPECT_EQ(variable.read().item<double>(), sum_to(replicas()));
  }
}

TEST_P(SingleCopy, NeedsAnAggregationInsideReplicasOnly) {
  const Variable variable = ten(VariableAggregation::kNone);
  EXPECT_THAT([&] { strategy_.run([&] { variable.assign(1.0); }); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("variable 'v'"), HasSubstr("must have an aggregation"))));
  EXPECT_EQ(variable.assign(6.0).read().item<double>(), 6);
}

TEST_P(SingleCopy, HasNoMeanOfIntegersInsideReplicas) {
  const Variable variable = ten(VariableAggregation::kMean, DType::kInt32);
  EXPECT_EQ(variable.assign(6).read().item<int>(), 6);
  EXPECT_THAT([&] { strategy_.run([&] { variable.assign(1); }); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the mean of integers")));
}

TEST_P(SingleCopy, HasNoSumOfBoolInsideReplicas) {
  const Variable variable =
      variable_in(strategy_, {.dtype = DType::kBool, .aggregation = VariableAggregation::kSum});
  EXPECT_THAT([&] { strategy_.run([&] { variable.assign(true); }); },
              ThrowsMessage<InvalidArgument>(HasSubstr("sum of bool is not defined")));
}

TEST_P(SingleCopy, TakesRowsThatReplicasReadOfItAsTheyWereBefore) {
  const Variable variable = variable_in(strategy_, {.initial_value = Tensor::from({1.0, 2.0})});
  strategy_.run([&] { variable.scatter_add({variable.read(), Tensor::from({1, 0}), {2}}); });
  EXPECT_THAT(component(variable, 0), ElementsAre(1 + 2 * replicas(), 2 + replicas()));
}

TEST_P(SingleCopy, TakesTheRowsOfEveryReplicaAsTheyAre) {
  for (const VariableAggregation aggregation : kAllAggregations) {
    const Variable variable =
        variable_in(strategy_, {.initial_value = Tensor::from({1.0, 2.0}), .aggregation = aggregation});
    strategy_.run([&](ReplicaContext& replica) {
      const double value = replica.replica_id_in_sync_group() + 1.0;
      variable.scatter_add({Tensor::from({value}), Tensor::from({1}), {2}});
    });
    EXPECT_THAT(component(variable, 0), ElementsAre(1, 2 + sum_to(replicas())));
    strategy_.run([&](ReplicaContext& replica) {
      const double value = replica.replica_id_in_sync_group() + 1.0;
      variable.scatter_update({Tensor::from({value}), Tensor::from({0}), {2}});
    });
    EXPECT_EQ(component(variable, 0)[0], replicas()) << "in the order of the replicas";
  }
}

TEST_P(SingleCopy, IsUpdatedOnceWithTheFirstReplicasArguments) {
  const Variable variable = ten(VariableAggregation::kSum);
  const auto values = per_replica(strategy_, [](int id) { return Tensor::scalar(id + 1.0); });
  int calls = 0;
  strategy_.extended().update(
      variable,
      [&](const Variable& v, const Tensor& value) {
        EXPECT_EQ(current_device(), Device::cpu(9));
        v.assign(value);
        ++calls;
      },
      values);
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(components(variable), ElementsAre(1));
}

TEST_P(SingleCopy, IsNotWrittenBehindTheAggregation) {
  const Variable variable = ten(VariableAggregation::kSum);
  strategy_.run([&] {
    EXPECT_THAT([&] { return variable.replica_component(); },
                ThrowsMessage<WrongContext>(HasSubstr("has one copy")));
  });
  strategy_.extended().update(variable, [](const Variable& v) { v.replica_component().fill(3); });
  EXPECT_THAT(components(variable), ElementsAre(3));
}

TEST_P(SingleCopy, NoticesReplicasThatChangeDifferentVariables) {
  const Variable v = ten(VariableAggregation::kSum);
  const Variable w = variable_in(
      strategy_, {.dtype = DType::kFloat64, .name = "w", .aggregation = VariableAggregation::kSum});
  EXPECT_THAT(
      [&] {
        strategy_.run([&](ReplicaContext& replica) {
          (replica.replica_id_in_sync_group() == replicas() - 1 ? w : v).assign(1.0);
        });
      },
      ThrowsMessage<InvalidArgument>(ContainsRegex("replica " + std::to_string(replicas() - 1) +
                                                   " \\(.*\\) assigns w, replica 0 \\(.*\\) assigns v;")));
  EXPECT_THAT(
      [&] {
        strategy_.run([&](ReplicaContext& replica) {
          if (replica.replica_id_in_sync_group() == 0)
            v.assign(1.0);
          else
            v.assign_add(1.0);
        });
      },
      ThrowsMessage<WrongContext>(
          ContainsRegex("replica 1 \\(worker 0, .*\\) assign_adds v, replica 0 \\(.*\\) assigns v;")));
  EXPECT_THAT(components(v), ElementsAre(10));
}

TEST_P(SingleCopy, IsMadeOnceInsideReplicas) {
  const auto variables = strategy_.run([] { return Variable({.aggregation = VariableAggregation::kSum}); });
  EXPECT_EQ(variables[0], variables[variables.size() - 1]);
  EXPECT_THAT(variables[0].components(), SizeIs(1));
}

}  // namespace
}  // namespace cohort::testing
