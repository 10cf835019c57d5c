// How variables of a strategy are made: kinds, names, places, inside replicas, and through
// creators.
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/strategy/one_device_strategy.h>
#include <cohort/value/variable_creator_scope.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class VariableCreation : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(VariableCreation);

TEST_P(VariableCreation, ChoosesToSynchronizeOnWrite) {
  const Variable variable = variable_in(strategy_, {});
  EXPECT_EQ(variable.synchronization(), VariableSynchronization::kOnWrite);
  EXPECT_EQ(variable.aggregation(), VariableAggregation::kNone);
}

TEST_P(VariableCreation, MirrorsNothingThatIsNeverSynchronized) {
  EXPECT_THAT([&] { return variable_in(strategy_, {.synchronization = VariableSynchronization::kNone}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("synchronization none")));
  const OneDeviceStrategy one;
  EXPECT_EQ(variable_in(one, {.synchronization = VariableSynchronization::kNone}).synchronization(),
            VariableSynchronization::kNone);
}

TEST_P(VariableCreation, NamesComponentsByTheirReplica) {
  const Variable variable = variable_in(strategy_, {.name = "foo"});
  EXPECT_EQ(variable.component_name(0), "foo");
  EXPECT_EQ(variable.component_name(1), "foo/replica_1");
  EXPECT_EQ(variable_in(strategy_, {.name = "foo"}).name(), "foo") << "names need not be unique";
}

TEST_P(VariableCreation, InsideReplicasGivesAllOfThemOneVariable) {
  const auto variables = strategy_.run([](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    Variable variable({.name = "v", .initial_value = Tensor::scalar(id + 5.0)});
    EXPECT_EQ(variable.read().data(), variable.components()[static_cast<std::size_t>(id)].data());
    return variable;
  });
  EXPECT_THAT(variables.components(), Each(variables[0]));
  EXPECT_EQ(components(variables[0]), std::vector<double>(static_cast<std::size_t>(replicas()), 5))
      << "all start with replica 0's value";
  EXPECT_TRUE(strategy_.extended().variable_created_in_scope(variables[0]));
}

TEST_P(VariableCreation, InsideReplicasMayGoOnBesideMergesAndCollectives) {
  strategy_.run([&](ReplicaContext& replica) {
    for (int round = 0; round < 3; ++round) {
      const Variable variable(
          {.initial_value = Tensor::scalar(1.0), .aggregation = VariableAggregation::kSum});
      variable.assign_add(1.0);
      replica.merge_call([](const Strategy&) {});
      EXPECT_EQ(variable.read().item<double>(), 1 + replicas());
    }
  });
}

class VariableCreationInReplicas : public WithSeveralReplicas {};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(VariableCreationInReplicas);

TEST_P(VariableCreationInReplicas, RefusesDifferentShapesAndKinds) {
  const auto making = [&](const VariableOptions& of_last) {
    return [&, of_last] {
      strategy_.run([&](ReplicaContext& replica) {
        return replica.replica_id_in_sync_group() == last() ? Variable(of_last)
                                                            : Variable({.shape = {2}, .name = "v"});
      });
    };
  };
  EXPECT_THAT(making({.shape = {3}, .name = "v"}),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("float32[2]"), HasSubstr("float32[3]"))));
  EXPECT_THROW(making({.shape = {2}, .dtype = DType::kFloat64, .name = "v"})(), InvalidArgument);
  EXPECT_THROW(making({.shape = {2}, .name = "v", .synchronization = VariableSynchronization::kOnRead})(),
               InvalidArgument);
  EXPECT_THROW(making({.shape = {2}, .name = "v", .aggregation = VariableAggregation::kSum})(),
               InvalidArgument);
}

TEST_P(VariableCreationInReplicas, BySomeOfThemIsAnErrorThatNamesBothSides) {
  EXPECT_THAT(
      [&] {
        strategy_.run([&](ReplicaContext& replica) {
          if (replica.replica_id_in_sync_group() == last()) return;
          const Variable variable({.name = "v"});
        });
      },
      ThrowsMessage<WrongContext>(
          AllOf(HasSubstr("different number of variable creation calls: replica 0 "),
                ContainsRegex("but replica " + std::to_string(last()) + " \\(.*\\) has returned"))));
}

TEST_P(VariableCreationInReplicas, WhileOthersMergeIsAnErrorThatNamesBoth) {
  EXPECT_THAT(
      [&] {
        strategy_.run([&](ReplicaContext& replica) {
          if (replica.replica_id_in_sync_group() == last())
            replica.merge_call([](const Strategy&) {});
          else
            static_cast<void>(Variable({.name = "v"}));
        });
      },
      ThrowsMessage<WrongContext>(AllOf(HasSubstr("replica " + std::to_string(last()) + " (worker 0, "),
                                        HasSubstr("calls merge_call, replica 0 (worker 0, "),
                                        HasSubstr("makes variable v (float32[]"))));
}

TEST_P(VariableCreation, ReportsItsErrorsAlsoFromInsideReplicas) {
  EXPECT_THAT(
      [&] {
        strategy_.run(
            [] { return Variable({.dtype = DType::kInt32, .aggregation = VariableAggregation::kMean}); });
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("floating dtype")));
}

TEST_P(VariableCreation, GoesToTheDevicesOfTheVariableItIsColocatedWith) {
  const Variable weights = variable_in(strategy_, {.name = "weights"});
  const auto scope = strategy_.scope();
  const auto devices = [](const Variable& variable) {
    std::vector<Device> result;
    for (const Tensor& component : variable.components()) result.push_back(component.device());
    return result;
  };
  const DeviceScope elsewhere(Device::cpu(9));
  EXPECT_EQ(devices(Variable({.colocate_with = &weights})), devices(weights));
  const auto colocated = strategy_.extended().colocate_vars_with(weights);
  EXPECT_EQ(devices(Variable({})), devices(weights)) << "the current device never moves a variable";
}

TEST_P(VariableCreation, IsColocatedInsideReplicasToo) {
  std::vector<Device> devices;
  devices.reserve(static_cast<std::size_t>(replicas()));
  for (int id = 0; id < replicas(); ++id) devices.push_back(Device::cpu(20 + id));
  const Variable weights = variable_in(strategy_, {.devices = devices});
  const auto made = strategy_.run([&] {
    const auto colocated = strategy_.extended().colocate_vars_with(weights);
    return Variable({});
  });
  for (int id = 0; id < replicas(); ++id) {
    const auto component = static_cast<std::size_t>(id);
    EXPECT_EQ(made[0].components()[component].device(), devices[component]);
  }
}

TEST_P(VariableCreation, IsColocatedWithVariablesOfTheSameScopeOnly) {
  const Variable weights = variable_in(strategy_, {.name = "weights"});
  const Variable plain({.name = "plain"});
  const auto colocate = [&](const Variable& variable) {
    return [&] { const auto colocated = strategy_.extended().colocate_vars_with(variable); };
  };
  EXPECT_THAT(colocate(weights), ThrowsMessage<WrongContext>(HasSubstr("outside its scope")));
  const auto scope = strategy_.scope();
  EXPECT_THAT(colocate(plain),
              ThrowsMessage<InvalidArgument>(HasSubstr("'plain' was not made in the scope")));
  EXPECT_THROW(Variable({.colocate_with = &plain}), InvalidArgument);
  EXPECT_NO_THROW(colocate(weights)());
}

TEST_P(VariableCreation, IsKnownToTheStrategy) {
  const Variable variable = variable_in(strategy_, {.name = "v"});
  const Variable plain({.name = "plain"});
  const OneDeviceStrategy other;
  const Variable foreign = variable_in(other, {});
  const StrategyExtended& extended = strategy_.extended();
  EXPECT_TRUE(extended.variable_created_in_scope(variable));
  EXPECT_FALSE(extended.variable_created_in_scope(plain));
  EXPECT_FALSE(extended.variable_created_in_scope(foreign));
  for (const Tensor& component : variable.components())
    EXPECT_EQ(extended.value_container(component), variable);
  EXPECT_EQ(extended.value_container(variable.read()), std::nullopt) << "a copy is no component";
  EXPECT_EQ(extended.value_container(foreign.components()[0]), std::nullopt);
}

TEST_P(VariableCreation, KnowsNoPartOfAComponent) {
  const Variable variable = variable_in(strategy_, {.shape = {2, 3}});
  const Tensor& component = variable.components()[0];
  for (const Tensor& part : {component.row(0), component.rows(0, 1), component.reshape({6})})
    EXPECT_EQ(strategy_.extended().value_container(part), std::nullopt) << describe(part);
  EXPECT_EQ(strategy_.extended().value_container(component.rows(0, 2)), variable) << "all of it";
}

TEST_P(VariableCreation, DoesNotKeepVariablesAlive) {
  Tensor component;
  {
    const Variable variable = variable_in(strategy_, {});
    component = variable.components()[0];
  }
  EXPECT_EQ(strategy_.extended().value_container(component), std::nullopt);
}

// ---- creators ----

VariableCreator renaming(const std::string& prefix) {
  return [prefix](const NextCreator& next, VariableOptions options) {
    options.name = prefix + options.name;
    return next(std::move(options));
  };
}

TEST(VariableCreators, AreAskedFromTheInnermostOut) {
  const VariableCreatorScope outer(renaming("outer:"));
  {
    const VariableCreatorScope inner(renaming("inner:"));
    EXPECT_EQ(Variable({.name = "v"}).name(), "outer:inner:v");
  }
  EXPECT_EQ(Variable({.name = "v"}).name(), "outer:v");
}

TEST(VariableCreators, MayGiveAnotherVariableInstead) {
  const Variable shared({.name = "shared"});
  const VariableCreatorScope scope(
      [&](const NextCreator&, const VariableOptions&) { return Variable(shared); });
  EXPECT_EQ(Variable({.name = "v"}), shared);
}

TEST(VariableCreators, BelongToTheirThread) {
  const VariableCreatorScope scope(renaming("mine:"));
  std::thread([] { EXPECT_EQ(Variable({.name = "v"}).name(), "v"); }).join();
}

TEST(VariableCreators, MustBeFunctions) {
  EXPECT_THROW(VariableCreatorScope{VariableCreator()}, InvalidArgument);
  EXPECT_EQ(Variable({.name = "v"}).name(), "v");
}

}  // namespace
}  // namespace cohort::testing
