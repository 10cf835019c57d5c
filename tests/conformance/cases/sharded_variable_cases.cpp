// Sharded variables on parameter servers.
#include <cohort/server/sharded_variable.h>

#include "server/client/server_variables.h"
#include "tasks.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;

class ShardedVariableCase : public TaskCase {};
COHORT_INSTANTIATE_TASK_CASES(ShardedVariableCase);

std::vector<float> floats(const Tensor& tensor) {
  const auto elements = tensor.span<float>();
  return {elements.begin(), elements.end()};
}

int server_of(const Variable& variable) {
  return dynamic_cast<const server::ServerVariable&>(*variable.state()).place().server;
}

/// Expects that the shards lie on the servers in turn, from the one of the first shard on.
void expect_in_turn(const std::vector<Variable>& shards, int servers) {
  int server = server_of(shards.front());
  for (const Variable& shard : shards) {
    EXPECT_EQ(server_of(shard), server) << shard.name();
    server = (server + 1) % servers;
  }
}

TEST_P(ShardedVariableCase, Case121_PartsGoToTheServersInTurn) {
  auto scope = strategy().scope();
  const ShardedVariable ten_rows({.shape = {10}, .name = "ten"});
  EXPECT_THAT(ten_rows.layout().extents(), ElementsAre(3, 3, 2, 2));
  const ShardedVariable three_rows({.shape = {3}, .name = "three"});
  EXPECT_THAT(three_rows.layout().extents(), ElementsAre(1, 1, 1));
  std::vector<Variable> all = ten_rows.variables();
  for (const Variable& shard : three_rows.variables()) all.push_back(shard);
  expect_in_turn(all, servers());
}

TEST_P(ShardedVariableCase, Case124_AnAssignmentIsCutIntoTheShards) {
  auto scope = strategy().scope();
  const Variable first({.initial_value = Tensor::from({0.0F})});
  const Variable second({.initial_value = Tensor::from({1.0F, 2.0F})});
  const Variable third({.initial_value = Tensor::from({3.0F})});
  const ShardedVariable whole({first, second, third});
  const ShardedVariable& returned = whole.assign(Tensor::from({4.0F, 5.0F, 6.0F, 7.0F}));
  EXPECT_EQ(&returned, &whole);
  EXPECT_THAT(floats(first.read()), ElementsAre(4));
  EXPECT_THAT(floats(second.read()), ElementsAre(5, 6));
  EXPECT_THAT(floats(third.read()), ElementsAre(7));
}

TEST_P(ShardedVariableCase, Case125_TheValueOfFourShardsFitsOneAndTwo) {
  auto scope = strategy().scope();
  const ShardedVariable four({.name = "four", .initial_value = Tensor::from({0.0F, 1.0F, 2.0F, 3.0F})});
  EXPECT_EQ(four.variables().size(), 4U);
  const Tensor saved = four.read();

  const ShardedVariable one({Variable({.shape = {4}})});
  one.assign(saved);
  EXPECT_THAT(floats(one.variables()[0].read()), ElementsAre(0, 1, 2, 3));
  const ShardedVariable two({Variable({.shape = {2}}), Variable({.shape = {2}})});
  two.assign(saved);
  EXPECT_THAT(floats(two.variables()[0].read()), ElementsAre(0, 1));
  EXPECT_THAT(floats(two.variables()[1].read()), ElementsAre(2, 3));
}

}  // namespace
}  // namespace cohort::testing
