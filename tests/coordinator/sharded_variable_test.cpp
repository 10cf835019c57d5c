#include <cohort/server/sharded_variable.h>

#include <gmock/gmock.h>

#include <cohort/coordinator/cluster_coordinator.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sgd.h>

#include "task_processes.h"

namespace cohort {
namespace {

using test::TaskProcesses;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kRows = 10;

/// Rows of three, counted through from 0.
Tensor counted(std::int64_t rows = kRows) {
  std::vector<float> values(static_cast<std::size_t>(3 * rows));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::from(values, {rows, 3});
}

IndexedSlices some_rows(const std::vector<std::int64_t>& rows) {
  return {Tensor::full({std::ssize(rows), 3}, DType::kFloat32, 0.5), Tensor::from(rows), {kRows, 3}};
}

std::vector<float> values(const Tensor& tensor) {
  const auto elements = tensor.span<float>();
  return {elements.begin(), elements.end()};
}

ParameterServerStrategy strategy_of(const TaskProcesses& tasks, int shards) {
  return ParameterServerStrategy(tasks.chief(), {.variable_partitioner = FixedShardsPartitioner(shards)});
}

std::vector<std::int64_t> extents(const ShardedVariable& variable) { return variable.layout().extents(); }

TEST(ShardedVariable, IsCutAsThePartitionerSays) {
  const TaskProcesses tasks(1, 2);
  const auto strategy = strategy_of(tasks, 4);
  auto scope = strategy.scope();
  const ShardedVariable table({.name = "table", .initial_value = counted()});
  EXPECT_THAT(extents(table), ElementsAre(3, 3, 2, 2));
  EXPECT_EQ(table.variables()[3].name(), "table/part_3");
  EXPECT_EQ(table.name(), "table");
  EXPECT_EQ(table.shape(), Shape({kRows, 3}));
  const ShardedVariable scalar({.name = "rate"});
  EXPECT_EQ(scalar.variables().front().name(), "rate");
  const Variable& neighbour = table.variables().front();
  const ShardedVariable beside({.shape = {kRows, 3}, .name = "beside", .colocate_with = &neighbour});
  EXPECT_THAT(extents(beside), ElementsAre(kRows));
}

TEST(ShardedVariable, GetsItsValueFromAFunctionOfRows) {
  const TaskProcesses tasks(1, 2);
  const auto strategy = strategy_of(tasks, 3);
  auto scope = strategy.scope();
  const ShardedVariable table({.shape = {kRows, 3}, .name = "table"},
                              [](const Shape& shard, std::int64_t first_row) {
                                return counted().rows(first_row, first_row + shard[0]);
                              });
  EXPECT_EQ(values(table.read()), values(counted()));
  const auto wrong = [] {
    const ShardedVariable made({.shape = {kRows, 3}, .name = "bad"},
                               [](const Shape&, std::int64_t) { return Tensor::scalar(1.0F); });
  };
  EXPECT_THAT(wrong, ThrowsMessage<InvalidArgument>(HasSubstr("the initializer of ShardedVariable 'bad'")));
}

TEST(ShardedVariable, DoesWhatAVariableDoes) {
  for (int servers = 1; servers <= 3; ++servers) {
    const TaskProcesses tasks(1, servers);
    const auto strategy = strategy_of(tasks, 3);
    auto scope = strategy.scope();
    const ShardedVariable table({.name = "table", .initial_value = counted()});
    const Variable whole({.name = "whole", .initial_value = counted()});
    const auto require_equal = [&](const char* after) {
      ASSERT_EQ(values(table.read()), values(whole.read())) << after << ", " << servers << " servers";
    };
    require_equal("made");
    table.assign_add(counted()).assign_sub(Tensor::full({kRows, 3}, DType::kFloat32, 2));
    whole.assign_add(counted()).assign_sub(Tensor::full({kRows, 3}, DType::kFloat32, 2));
    require_equal("assign");
    const IndexedSlices rows = some_rows({9, 0, 4, 9});
    table.scatter_add(rows).scatter_mul(rows).scatter_div(rows).scatter_max(rows).scatter_min(rows);
    whole.scatter_add(rows).scatter_mul(rows).scatter_div(rows).scatter_max(rows).scatter_min(rows);
    table.scatter_sub(rows);
    whole.scatter_sub(rows);
    require_equal("scatter");
    table.scatter_update(some_rows({}));
    table.scatter_update(some_rows({5}));
    whole.scatter_update(some_rows({5}));
    require_equal("scatter_update");
  }
}

TEST(ShardedVariable, IsReadByIndexAndByRows) {
  const TaskProcesses tasks(1, 2);
  const auto strategy = strategy_of(tasks, 4);
  auto scope = strategy.scope();
  const ShardedVariable table({.name = "table", .initial_value = counted()});
  EXPECT_THAT(values(table.at({7})), ElementsAre(21, 22, 23));
  EXPECT_THAT(values(table.at({Slice{.begin = 8, .end = 1, .step = -3}, 1})), ElementsAre(25, 16, 7));
  EXPECT_EQ(table.at({Slice{.begin = 3, .end = 3}}).shape(), Shape({0, 3}));
  EXPECT_EQ(table.at({NewAxis{}, 3}).shape(), Shape({1, 3}));
  const Tensor looked_up = embedding_lookup(table, Tensor::from(std::vector{9, 0, 9, 5}, {2, 2}));
  EXPECT_EQ(looked_up.shape(), Shape({2, 2, 3}));
  EXPECT_THAT(values(looked_up), ElementsAre(27, 28, 29, 0, 1, 2, 27, 28, 29, 15, 16, 17));
  const Tensor mask = Tensor::zeros({kRows}, DType::kBool);
  mask.span<bool>()[6] = true;
  EXPECT_THAT(values(table.masked(mask)), ElementsAre(18, 19, 20));
  EXPECT_THROW(static_cast<void>(table.at({10})), InvalidArgument);
  EXPECT_THROW(static_cast<void>(embedding_lookup(table, Tensor::from({0, 10}))), InvalidArgument);
  EXPECT_THROW(static_cast<void>(embedding_lookup(table, Tensor::from({-1}))), InvalidArgument);
}

TEST(ShardedVariable, WhatDoesNotFitChangesNothing) {
  const TaskProcesses tasks(1, 2);
  const auto strategy = strategy_of(tasks, 2);
  auto scope = strategy.scope();
  const ShardedVariable table({.name = "table", .initial_value = counted()});
  EXPECT_THAT([&] { table.assign(counted(kRows + 1)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("variable 'table', which is float32[10, 3]")));
  EXPECT_THROW(table.assign(counted(kRows - 1)), InvalidArgument);
  EXPECT_THROW(table.scatter_add(some_rows({0, 10})), InvalidArgument);
  EXPECT_EQ(values(table.read()), values(counted()));
  const ShardedVariable counts({.name = "counts", .initial_value = Tensor::full({4}, DType::kInt64, 8)});
  // A division by 0 in the second shard is found by its server.
  EXPECT_THROW(counts.scatter_div({Tensor::from(std::vector<std::int64_t>{2, 0}),
                                   Tensor::from(std::vector<std::int64_t>{0, 3}),
                                   {4}}),
               InvalidArgument);
  EXPECT_THAT(counts.read().span<std::int64_t>(), ElementsAre(8, 8, 8, 8));
}

TEST(ShardedVariable, OnlyVariablesThatFitAreOne) {
  const Variable a({.shape = {2, 3}, .name = "a"});
  const Variable b({.shape = {1, 3}, .name = "b"});
  const ShardedVariable both({a, b});
  EXPECT_EQ(both.shape(), Shape({3, 3}));
  both.assign(counted(3));
  EXPECT_THAT(values(b.read()), ElementsAre(6, 7, 8));
  const auto make = [](std::vector<Variable> variables) {
    return [variables] { const ShardedVariable made(variables); };
  };
  EXPECT_THROW(make({})(), InvalidArgument);
  EXPECT_THAT(make({a, Variable({.shape = {2, 4}, .name = "wide"})}),
              ThrowsMessage<InvalidArgument>(HasSubstr("'wide', float32[2, 4]")));
  EXPECT_THROW(make({a, Variable({.shape = {2, 3}, .dtype = DType::kInt32})})(), InvalidArgument);
  EXPECT_THROW(make({Variable({.name = "x"}), Variable({.name = "y"})})(), InvalidArgument);
}

/// A table's value after two steps with the same rows and two with all.
template <class Step>
std::vector<float> trained(const ShardedVariable& table, Step step) {
  for (int i = 0; i < 2; ++i) step(some_rows({9, 1, 9, 4}));
  for (int i = 0; i < 2; ++i) step(counted());
  return values(table.read());
}

TEST(ShardedVariable, LearnsFromSparseGradients) {
  for (int servers = 1; servers <= 3; ++servers) {
    const TaskProcesses tasks(1, servers);
    const auto strategy = strategy_of(tasks, 3);
    const auto train = [](const ShardedVariable& table, auto make) {
      auto optimizer = make();
      return trained(table, [&](const auto& gradient) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(gradient)>, Tensor>)
          optimizer.apply_gradients(table.split_gradient(gradient));
        else
          optimizer.apply_sparse_gradients(table.split_gradient(gradient));
      });
    };
    const auto sgd = [] { return Sgd({.learning_rate = 0.5}); };
    const std::vector<float> expected = train(ShardedVariable({.initial_value = counted()}), sgd);
    std::vector<float> from_servers;
    static_cast<void>(strategy.run([&] {
      from_servers = train(ShardedVariable({.initial_value = counted()}), sgd);
      return 0;
    }));
    EXPECT_EQ(from_servers, expected) << servers;
    EXPECT_FLOAT_EQ(expected[0], -0.5F * 2 * 0);
    EXPECT_FLOAT_EQ(expected[27], 27 - 0.5F * (2 * 1.0F + 2 * 27));
  }
}

TEST(ShardedVariable, RowsThatAreNotNamedKeepTheirSlots) {
  const TaskProcesses tasks(1, 2);
  const auto strategy = strategy_of(tasks, 2);
  static_cast<void>(strategy.run([] {
    const ShardedVariable table({.name = "table", .initial_value = counted()});
    Momentum optimizer({.learning_rate = 1, .momentum = 0.5});
    optimizer.apply_sparse_gradients(table.split_gradient(some_rows({0, 9})));
    optimizer.apply_sparse_gradients(table.split_gradient(some_rows({9})));
    // Row 0 made one step of 0.5; row 9 another one, which goes on with half of it.
    EXPECT_FLOAT_EQ(table.at({0, 0}).item<float>(), -0.5F);
    EXPECT_FLOAT_EQ(table.at({9, 0}).item<float>(), 27 - 0.5F - 0.75F);
    return 0;
  }));
}

TEST(ShardedVariable, WrongGradientsAreRefused) {
  const TaskProcesses tasks(1, 1);
  const auto strategy = strategy_of(tasks, 2);
  static_cast<void>(strategy.run([] {
    const ShardedVariable table({.name = "table", .initial_value = counted()});
    EXPECT_THROW(static_cast<void>(table.split_gradient(counted(kRows + 1))), InvalidArgument);
    EXPECT_THROW(static_cast<void>(table.split_gradient(some_rows({10}))), InvalidArgument);
    Sgd optimizer({.learning_rate = 1});
    EXPECT_THAT(
        [&] {
          optimizer.apply_sparse_gradients({{some_rows({1}), table.variables().front()}});
        },
        ThrowsMessage<InvalidArgument>(HasSubstr("'table/part_0'")));
    return 0;
  }));
}

Tensor look_up_and_train(const ShardedVariable& table, const Tensor& rows) {
  const Tensor before = embedding_lookup(table, rows);
  Sgd optimizer({.learning_rate = 1});
  const IndexedSlices gradient{Tensor::full({rows.shape()[0], 3}, DType::kFloat32, 1), rows, table.shape()};
  optimizer.apply_sparse_gradients(table.split_gradient(gradient));
  // After what this function wrote, and others meanwhile.
  const Tensor after = embedding_lookup(table, rows);
  if (after.span<float>()[0] > before.span<float>()[0] - 1)
    throw Internal("a function does not read what it wrote: {}, after {}", after.span<float>()[0],
                   before.span<float>()[0]);
  return before;
}

TEST(ShardedVariable, IsAnArgumentOfFunctions) {
  for (int servers = 1; servers <= 3; ++servers) {
    const TaskProcesses tasks(2, servers);
    const auto strategy = strategy_of(tasks, 3);
    const ClusterCoordinator coordinator(strategy);
    auto scope = strategy.scope();
    const ShardedVariable table({.name = "table", .initial_value = counted()});
    const Tensor rows = Tensor::from(std::vector<std::int64_t>{0, 5, 9});
    EXPECT_THAT(values(coordinator.schedule<look_up_and_train>(table, rows).get()),
                ElementsAre(0, 1, 2, 15, 16, 17, 27, 28, 29));
    for (int i = 1; i < 100; ++i) coordinator.schedule<look_up_and_train>(table, rows);
    coordinator.join();
    EXPECT_THAT(values(table.at({Slice{}, 0})),
                ElementsAre(-100, 3, 6, 9, 12, 15 - 100, 18, 21, 24, 27 - 100))
        << servers;
  }
}

}  // namespace
}  // namespace cohort
