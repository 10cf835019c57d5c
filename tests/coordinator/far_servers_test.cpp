// Servers that this task reaches over TCP alone, as on another host: large values travel at the end of
// messages.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <cohort/server/parameter_server_strategy.h>
#include <cohort/server/sharded_variable.h>

#include "task_processes.h"

namespace cohort {
namespace {

using test::TaskProcesses;

/// The chief's place, with the other tasks out of reach of shared memory.
remote::TaskPlace far_from(const TaskProcesses& tasks) {
  remote::TaskPlace place = tasks.chief();
  for (remote::Address& address : place.addresses) address.local.clear();
  return place;
}

/// No two of them alike, and none of another seed.
Tensor numbered(const Shape& shape, float seed) {
  Tensor result = Tensor::uninitialized(shape, DType::kFloat32);
  float next = seed;
  for (float& element : result.span<float>()) element = next++;
  return result;
}

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.span<float>();
  return {values.begin(), values.end()};
}

// 1 MiB, and an odd number of elements.
const Shape kLarge{512, 513};

TEST(FarServers, KeepWhatLargeWritesBring) {
  const TaskProcesses tasks(0, 1);
  const ParameterServerStrategy strategy(far_from(tasks));
  auto scope = strategy.scope();
  const Variable variable({.initial_value = numbered(kLarge, 1)});
  EXPECT_EQ(floats(variable.read()), floats(numbered(kLarge, 1)));
  variable.assign(numbered(kLarge, 7));
  EXPECT_EQ(floats(variable.read()), floats(numbered(kLarge, 7)));
  variable.assign_add(Tensor::full(kLarge, DType::kFloat32, 2));
  EXPECT_EQ(floats(variable.read()), floats(numbered(kLarge, 9)));
}

TEST(FarServers, TakeLargeAndSmallValuesInOneMessage) {
  const TaskProcesses tasks(0, 2);
  const ParameterServerStrategy strategy(far_from(tasks),
                                         {.variable_partitioner = FixedShardsPartitioner(4)});
  auto scope = strategy.scope();
  // Two shards on each server change together: what is prepared outlives its message.
  const ShardedVariable table({.shape = {1024, 513}, .name = "table"});
  ASSERT_EQ(table.variables().size(), 4u);
  for (const float seed : {1.0F, 20.0F, 300.0F}) {
    const Tensor value = numbered(table.shape(), seed);
    table.assign(value);
    EXPECT_EQ(floats(table.read()), floats(value));
  }
}

TEST(FarServers, GiveManyRows) {
  const TaskProcesses tasks(0, 1);
  const ParameterServerStrategy strategy(far_from(tasks));
  auto scope = strategy.scope();
  const Tensor value = numbered(kLarge, 1);
  const Variable variable({.initial_value = value});
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < 400; ++row) rows.push_back(row * 7 % kLarge[0]);
  const Tensor found = embedding_lookup(variable, Tensor::from(rows));
  for (std::size_t i = 0; i < rows.size(); ++i)
    ASSERT_EQ(floats(found.row(static_cast<std::int64_t>(i))), floats(value.row(rows[i])))
        << "row " << rows[i];
  EXPECT_EQ(embedding_lookup(variable, Tensor::from(std::vector<std::int64_t>())).shape(), (Shape{0, 513}));
  EXPECT_THROW(static_cast<void>(embedding_lookup(variable, Tensor::from({std::int64_t{512}}))),
               InvalidArgument);
}

TEST(FarServers, GoOnWithLargeValuesWhenTheyAreStartedAgain) {
  TaskProcesses tasks(0, 1);
  const ParameterServerStrategy strategy(far_from(tasks));
  auto scope = strategy.scope();
  const Variable variable({.initial_value = numbered(kLarge, 1)});
  for (float seed = 2; seed < 5; ++seed) {
    tasks.kill({"ps", 0});
    tasks.start({"ps", 0});
    variable.assign(numbered(kLarge, seed));
    EXPECT_EQ(floats(variable.read()), floats(numbered(kLarge, seed)));
  }
}

}  // namespace
}  // namespace cohort
