// What scopes do to variables on servers: creators, neighbours, and values that are read once.
#include <cohort/server/caching_scope.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <cohort/coordinator/cluster_coordinator.h>
#include <cohort/server/sharded_variable.h>
#include <cohort/value/variable_creator_scope.h>

#include "server/client/server_variables.h"
#include "task_processes.h"

namespace cohort {
namespace {

using test::TaskProcesses;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

int server_of(const Variable& variable) {
  return dynamic_cast<const server::ServerVariable&>(*variable.state()).place().server;
}

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.span<float>();
  return {values.begin(), values.end()};
}

TEST(ScopesOnServers, CreatorsAreAskedFromTheInnermost) {
  const TaskProcesses tasks(0, 2);
  const ParameterServerStrategy strategy(tasks.chief());
  std::vector<std::string> asked;
  const auto noting = [&](const std::string& name) {
    return [&asked, name](const NextCreator& next, VariableOptions options) {
      asked.push_back(name);
      options.name += "/" + name;
      return next(std::move(options));
    };
  };
  const VariableCreatorScope outside(noting("outer"));
  auto scope = strategy.scope();
  const VariableCreatorScope inside(noting("inner"));
  const Variable variable({.name = "v"});
  EXPECT_THAT(asked, ElementsAre("inner", "outer"));
  EXPECT_EQ(variable.name(), "v/inner/outer");
  EXPECT_EQ(server_of(variable), 0);

  const VariableCreatorScope other([&](const NextCreator&, const VariableOptions&) { return variable; });
  const Variable instead({.name = "w"});
  EXPECT_EQ(instead, variable) << "a creator may return another variable";
}

TEST(ScopesOnServers, NeighboursShareAServerTakeNoTurnAndAreNotCut) {
  const TaskProcesses tasks(0, 3);
  const ParameterServerStrategy strategy(tasks.chief(), {.variable_partitioner = FixedShardsPartitioner(2)});
  auto scope = strategy.scope();
  const Variable a({.name = "a"});
  const Variable b({.name = "b"});
  {
    const auto beside = strategy.extended().colocate_vars_with(b);
    EXPECT_EQ(server_of(Variable({.name = "c"})), 1);
    const ShardedVariable table({.shape = {4}, .name = "d"});
    ASSERT_EQ(table.variables().size(), 1u);
    EXPECT_EQ(server_of(table.variables().front()), 1);
    strategy.run([&] {
      const ShardedVariable in_replica({.shape = {4}, .name = "e"});
      EXPECT_EQ(in_replica.variables().size(), 1u);
    });
  }
  const ShardedVariable cut({.shape = {4}, .name = "f"});
  ASSERT_EQ(cut.variables().size(), 2u);
  EXPECT_EQ(server_of(cut.variables()[0]), 2);
  EXPECT_EQ(server_of(cut.variables()[1]), 0);
}

TEST(ScopesOnServers, ACachingScopeReadsEachVariableOnce) {
  const TaskProcesses tasks(0, 2);
  const ParameterServerStrategy strategy(tasks.chief(), {.variable_partitioner = FixedShardsPartitioner(2)});
  auto scope = strategy.scope();
  const Variable weight({.name = "weight"});
  const ShardedVariable table({.shape = {2}, .name = "table"});
  {
    const CachingScope once;
    EXPECT_EQ(weight.read().item<float>(), 0);
    EXPECT_THAT(floats(table.read()), ElementsAre(0, 0));
    weight.assign(1.0F);
    table.assign(Tensor::from({2.0F, 3.0F}));
    weight.read().fill(7);
    EXPECT_EQ(weight.read().item<float>(), 0) << "also after an assignment, and a change of the copy";
    EXPECT_THAT(floats(table.read()), ElementsAre(0, 0));
    EXPECT_THAT(floats(table.variables()[1].read()), ElementsAre(0)) << "read as a part of the table";
    strategy.run([&] { EXPECT_EQ(weight.read().item<float>(), 0); });
    EXPECT_THAT(floats(embedding_lookup(table, Tensor::from({1}))), ElementsAre(3)) << "rows are asked for";
    EXPECT_THAT([] { const CachingScope nested; }, ThrowsMessage<WrongContext>(HasSubstr("do not nest")));
    EXPECT_EQ(weight.read().item<float>(), 0) << "the refused scope has changed nothing";
  }
  EXPECT_EQ(weight.read().item<float>(), 1);
  const CachingScope anew;
  EXPECT_EQ(weight.read().item<float>(), 1);
  EXPECT_THAT(floats(table.read()), ElementsAre(2, 3));
}

TEST(ScopesOnServers, ReplicasReadWhatTheirCallerHasCached) {
  const TaskProcesses tasks(0, 1);
  const ParameterServerStrategy strategy(tasks.chief(), {.devices = cpu_devices(2)});
  auto scope = strategy.scope();
  const Variable weight({.name = "weight"});
  const CachingScope once;
  EXPECT_EQ(weight.read().item<float>(), 0);
  weight.assign(1.0F);
  strategy.run([&] { EXPECT_EQ(weight.read().item<float>(), 0); });
}

TEST(ScopesOnServers, AScheduledFunctionMayOpenACachingScope) {
  const TaskProcesses tasks(1, 1);
  const ParameterServerStrategy strategy(tasks.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable weight({.name = "weight"});
  const auto seen = coordinator.schedule<[](const Variable& variable) {
    std::vector<float> values;
    {
      const CachingScope once;
      for (int i = 0; i < 2; ++i) {
        values.push_back(variable.read().item<float>());
        variable.assign_add(1.0F);
      }
    }
    values.push_back(variable.read().item<float>());
    return values;
  }>(weight);
  EXPECT_THAT(seen.get(), ElementsAre(0, 0, 2));
}

}  // namespace
}  // namespace cohort
