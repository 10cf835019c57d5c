// Variables of a strategy: one component per replica, and the rules that keep them equal.

#include <optional>
#include <set>

#include <gmock/gmock.h>

#include <cohort/strategy/one_device_strategy.h>
#include <cohort/value/variable.h>

#include "fake_cluster.h"
#include "strategies.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class MirroredVariable : public WithReplicas {
 protected:
  [[nodiscard]] Variable ten(VariableAggregation aggregation, DType dtype = DType::kFloat32) const {
    return variable_in(
        strategy_, {.name = "v", .initial_value = Tensor::full({}, dtype, 10), .aggregation = aggregation});
  }
};
COHORT_INSTANTIATE_REPLICAS(MirroredVariable);

TEST_P(MirroredVariable, HasOneComponentPerReplicaOnItsDevice) {
  const Tensor initial = Tensor::from({1.0f, 2.0f});
  const Variable variable = variable_in(strategy_, {.initial_value = initial});
  ASSERT_THAT(variable.components(), SizeIs(replicas()));
  std::set<const std::byte*> storages{initial.data()};
  for (int id = 0; id < replicas(); ++id) {
    const Tensor& component = variable.components()[static_cast<std::size_t>(id)];
    EXPECT_EQ(component.device(), Device::cpu(id));
    EXPECT_TRUE(bitwise_equal(component, initial));
    EXPECT_TRUE(storages.insert(component.data()).second) << "every component has storage of its own";
  }
}

TEST_P(MirroredVariable, StartsWithZeros) {
  const Variable variable = variable_in(strategy_, {.shape = {2, 3}, .dtype = DType::kInt64});
  for (const Tensor& component : variable.components()) {
    EXPECT_EQ(describe(component), "int64[2, 3]");
    EXPECT_THAT(numbers(component), Each(0));
  }
}

TEST_P(MirroredVariable, HasAMeanOnlyOfFloatingDtypes) {
  const auto scope = strategy_.scope();
  EXPECT_THAT([] { return Variable({.dtype = DType::kInt32, .aggregation = VariableAggregation::kMean}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("floating dtype")));
}

TEST_P(MirroredVariable, IsReadInAReplicaAsItsOwnComponentWithoutACopy) {
  const Variable variable = ten(VariableAggregation::kNone);
  strategy_.run([&](ReplicaContext& replica) {
    const auto id = static_cast<std::size_t>(replica.replica_id_in_sync_group());
    EXPECT_EQ(variable.read().data(), variable.components()[id].data());
    EXPECT_EQ(variable.replica_component().data(), variable.components()[id].data());
  });
}

TEST_P(MirroredVariable, IsReadElsewhereAsACopyOfTheFirstComponent) {
  const Variable variable = ten(VariableAggregation::kNone);
  strategy_.run([&](ReplicaContext& replica) { variable.assign(replica.replica_id_in_sync_group() + 1); });
  const auto expect_copy = [&] {
    const Tensor value = variable.read();
    EXPECT_EQ(value.item<int>(), 1);
    EXPECT_NE(value.data(), variable.components()[0].data());
  };
  expect_copy();
  const auto scope = strategy_.scope();
  expect_copy();
  strategy_.run([&](ReplicaContext& r) { r.merge_call([&](const Strategy&) { expect_copy(); }); });
}

/// What every component becomes when replica r assigns r+1; nothing where each keeps its own.
std::optional<double> aggregated(VariableAggregation aggregation, int replicas) {
  switch (aggregation) {
    case VariableAggregation::kSum: return sum_to(replicas);
    case VariableAggregation::kMean: return (replicas + 1) / 2.0;
    case VariableAggregation::kOnlyFirstReplica: return 1;
    case VariableAggregation::kNone: break;
  }
  return std::nullopt;
}

TEST_P(MirroredVariable, AggregatesWhatReplicasAssign) {
  for (const VariableAggregation aggregation : kAllAggregations) {
    const Variable assigned = ten(aggregation);
    const Variable added = ten(aggregation);
    const Variable subtracted = ten(aggregation);
    strategy_.run([&](ReplicaContext& replica) {
      const Tensor mine = Tensor::scalar(static_cast<float>(replica.replica_id_in_sync_group()) + 1);
      assigned.assign(mine);
      added.assign_add(mine);
      subtracted.assign_sub(mine);
    });
    for (int id = 0; id < replicas(); ++id) {
      const auto at = static_cast<std::size_t>(id);
      const double value = aggregated(aggregation, replicas()).value_or(id + 1);
      EXPECT_EQ(components(assigned)[at], value) << to_string(aggregation);
      EXPECT_EQ(components(added)[at], 10 + value) << to_string(aggregation);
      EXPECT_EQ(components(subtracted)[at], 10 - value) << to_string(aggregation);
    }
  }
}

TEST_P(MirroredVariable, TakesANumberAsThisReplicasValue) {
  for (const VariableAggregation aggregation : kAllAggregations) {
    const Variable variable = ten(aggregation);
    strategy_.run([&] { variable.assign(5); });
    const bool sums = aggregation == VariableAggregation::kSum;
    EXPECT_THAT(components(variable), Each(sums ? 5 * replicas() : 5)) << to_string(aggregation);
  }
}

TEST_P(MirroredVariable, TakesMirroredValuesEverywhere) {
  const Mirrored twos(std::vector(static_cast<std::size_t>(replicas()), Tensor::scalar(2.0f)));
  const Variable variable = ten(VariableAggregation::kMean);
  EXPECT_EQ(variable.assign(twos).read().item<int>(), 2);
  strategy_.run([&] { variable.assign_add(twos); });
  EXPECT_THAT(components(variable), Each(4));
}

TEST_P(MirroredVariable, IsReadOutsideReplicasOnTheCurrentDevice) {
  const Variable variable = ten(VariableAggregation::kNone);
  strategy_.run([&](ReplicaContext& replica) { variable.assign(replica.replica_id_in_sync_group()); });
  for (int id = 0; id < replicas(); ++id) {
    const DeviceScope here(Device::cpu(id));
    EXPECT_EQ(variable.read().item<int>(), id);
  }
  const DeviceScope elsewhere(Device::cpu(99));
  EXPECT_EQ(variable.read().item<int>(), 0);
}

TEST_P(MirroredVariable, AggregatesIntegersExactly) {
  const Variable sum = ten(VariableAggregation::kSum, DType::kInt64);
  const Variable first = ten(VariableAggregation::kOnlyFirstReplica, DType::kInt64);
  constexpr std::int64_t kLarge = std::int64_t{1} << 60;
  strategy_.run([&](ReplicaContext& replica) {
    sum.assign(std::int64_t{1} + replica.replica_id_in_sync_group());
    first.assign(kLarge + 1 - replica.replica_id_in_sync_group());
  });
  EXPECT_THAT(components(sum), Each(sum_to(replicas())));
  for (const Tensor& component : first.components()) EXPECT_EQ(component.item<std::int64_t>(), kLarge + 1);
}

TEST_P(MirroredVariable, TakesTheReplicasArguments) {
  const Variable variable = ten(VariableAggregation::kSum);
  const auto values =
      per_replica(strategy_, [](int id) { return Tensor::scalar(2.0f * static_cast<float>(id + 1)); });
  strategy_.run([&](const Tensor& mine) { variable.assign(mine); }, values);
  EXPECT_THAT(components(variable), Each(2 * sum_to(replicas())));
}

TEST_P(MirroredVariable, TakesOneValueForAllComponentsOutsideReplicas) {
  for (const VariableAggregation aggregation : kAllAggregations) {
    const Variable assigned = ten(aggregation);
    assigned.assign(6);
    EXPECT_THAT(components(assigned), Each(6)) << "outside any scope, " << to_string(aggregation);
    const auto scope = strategy_.scope();
    assigned.assign_add(1);
    EXPECT_THAT(components(assigned), Each(7)) << "inside scope(), " << to_string(aggregation);
    strategy_.run([&](ReplicaContext& r) { r.merge_call([&](const Strategy&) { assigned.assign_sub(3); }); });
    EXPECT_THAT(components(assigned), Each(4)) << "in a merge, " << to_string(aggregation);
  }
}

TEST_P(MirroredVariable, RefusesAnotherShapeOrDtypeAlsoFromASingleReplica) {
  const Variable variable = ten(VariableAggregation::kSum);
  const auto wrong = ThrowsMessage<InvalidArgument>(
      AllOf(HasSubstr("float32[2] to variable 'v', which is float32[]"), HasSubstr("must agree")));
  const Tensor value = Tensor::from({1.0f, 2.0f});
  EXPECT_THAT([&] { variable.assign(value); }, wrong);
  EXPECT_THAT([&] { strategy_.run([&] { variable.assign_add(value); }); }, wrong);
  EXPECT_THAT(
      [&] {
        strategy_.run([&](ReplicaContext& replica) {
          if (replica.replica_id_in_sync_group() == last())
            variable.assign(value);
          else
            variable.assign(1);
        });
      },
      wrong);
  EXPECT_THROW(variable.assign(Tensor::scalar(1.0)), InvalidArgument) << "float64 for float32";
  EXPECT_THAT(components(variable), Each(10));
}

TEST_P(MirroredVariable, IsOutOfReachWhileAnotherStrategyIsActive) {
  const Variable variable = ten(VariableAggregation::kSum);
  const OneDeviceStrategy other;
  const auto mixed = ThrowsMessage<WrongContext>(
      AllOf(HasSubstr("variable 'v', which belongs to MirroredStrategy, while OneDeviceStrategy is active"),
            HasSubstr("mixing different strategies")));
  const auto expect_mixed = [&] {
    EXPECT_THAT([&] { return variable.read(); }, mixed);
    EXPECT_THAT([&] { variable.assign(1); }, mixed);
    EXPECT_THAT([&] { variable.assign_add(1); }, mixed);
    EXPECT_THAT([&] { return variable.replica_component(); }, mixed);
  };
  other.run(expect_mixed);
  const auto scope = other.scope();
  expect_mixed();
}

TEST_P(MirroredVariable, HasAComponentToWriteInsideReplicasOnly) {
  const Variable variable = ten(VariableAggregation::kNone);
  const auto refused = ThrowsMessage<WrongContext>(
      AllOf(HasSubstr("variable 'v' has one component per replica"), HasSubstr("inside run()")));
  EXPECT_THAT([&] { return variable.replica_component(); }, refused) << "outside any scope";
  const auto scope = strategy_.scope();
  EXPECT_THAT([&] { return variable.replica_component(); }, refused);
  strategy_.run([&](ReplicaContext& replica) {
    variable.replica_component().fill(replica.replica_id_in_sync_group());
  });
  for (int id = 0; id < replicas(); ++id) EXPECT_EQ(components(variable)[static_cast<std::size_t>(id)], id);
}

TEST_P(MirroredVariable, OutlivesItsStrategy) {
  std::optional<MirroredStrategy> strategy = mirrored(replicas());
  const Variable variable = variable_in(*strategy, {.initial_value = Tensor::scalar(1.0f)});
  strategy.reset();
  variable.assign(2);
  EXPECT_EQ(variable.read().item<int>(), 2);
  EXPECT_THAT(components(variable), Each(2));
}

TEST_P(MirroredVariable, MayBeAssignedItsOwnComponent) {
  const Variable variable = variable_in(strategy_, {.initial_value = Tensor::scalar(3.0f)});
  variable.assign_add(variable.components()[0]);
  EXPECT_THAT(components(variable), Each(6));
}

TEST_P(MirroredVariable, MayBeAssignedATensorOverTheMemoryOfItsOwnComponent) {
  const Variable variable = variable_in(strategy_, {.initial_value = Tensor::from({1.0, 2.0})});
  const Tensor over = Tensor::wrap(variable.components()[0].span<double>(), {2});
  variable.assign_add(over);
  for (int id = 0; id < replicas(); ++id) EXPECT_THAT(component(variable, id), ElementsAre(2, 4));
  variable.scatter_add({over, Tensor::from({1, 1}), {2}});
  for (int id = 0; id < replicas(); ++id) EXPECT_THAT(component(variable, id), ElementsAre(2, 10));
}

TEST_P(MirroredVariable, IsNotAPlainVariableThatReplicasWouldRaceFor) {
  const Variable plain({.initial_value = Tensor::scalar(3.0f)});
  const auto writing = [&] { strategy_.run([&] { plain.assign_add(1); }); };
  if (replicas() == 1) {
    EXPECT_NO_THROW(writing());
  } else {
    EXPECT_THAT(writing, ThrowsMessage<WrongContext>(HasSubstr("make the variable inside the scope")));
  }
}

TEST_P(MirroredVariable, MayBeMadeInAMerge) {
  const auto variables = strategy_.run([](ReplicaContext& replica) {
    return replica.merge_call(
        [](const Strategy&) { return Variable({.initial_value = Tensor::scalar(3.0f)}); });
  });
  EXPECT_EQ(variables[0], variables[variables.size() - 1]);
  EXPECT_THAT(components(variables[0]), AllOf(SizeIs(replicas()), Each(3)));
}

// The variables of workers that are threads of this process.

class MultiWorkerVariables : public ::testing::TestWithParam<int> {
 protected:
  static void on_every_worker(void (*check)(Bootstrap& worker, int devices)) {
    for (const int devices : {1, 2, 3})
      for_each_worker(GetParam(), [&](Bootstrap& worker) { check(worker, devices); });
  }
};
COHORT_INSTANTIATE_REPLICAS(MultiWorkerVariables);

TEST_P(MultiWorkerVariables, AreMadeTogether) { on_every_worker(check_creation); }
TEST_P(MultiWorkerVariables, AreKeptEqualOnWrite) { on_every_worker(check_on_write_variables); }
TEST_P(MultiWorkerVariables, AreAggregatedOnRead) { on_every_worker(check_on_read_variables); }
TEST_P(MultiWorkerVariables, TakeTheRowsOfAllWorkers) { on_every_worker(check_rows); }
TEST_P(MultiWorkerVariables, AreUpdated) { on_every_worker(check_updates); }

}  // namespace
}  // namespace cohort::testing
