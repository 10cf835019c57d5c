// Variables on servers, saved and restored by the chief.
#include <cohort/checkpoint/checkpoint.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <cohort/server/parameter_server_strategy.h>
#include <cohort/server/sharded_variable.h>
#include <cohort/strategy/mirrored_strategy.h>

#include "task_processes.h"
#include "temporary_folder.h"

namespace cohort {
namespace {

using test::TaskProcesses;
using testing::TemporaryFolder;

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.span<float>();
  return {values.begin(), values.end()};
}

Tensor numbered(const Shape& shape, float first) {
  Tensor result = Tensor::uninitialized(shape, DType::kFloat32);
  for (float& element : result.span<float>()) element = first++;
  return result;
}

/// A job of its own with a variable and a table.
struct Job {
  Job(int servers, int shards)
      : tasks(0, servers),
        strategy(tasks.chief(), {.variable_partitioner = FixedShardsPartitioner(shards)}),
        scope(strategy.scope()) {
    checkpoint.add("plain", plain);
    checkpoint.add("table", table);
  }

  TaskProcesses tasks;
  ParameterServerStrategy strategy;
  StrategyScope scope;
  Variable plain{{.shape = {300, 7}, .name = "plain"}};
  ShardedVariable table{{.shape = {11, 5}, .name = "table"}};
  Checkpoint checkpoint{strategy};
};

TEST(CheckpointOfServers, IsRestoredWithOtherServersAndShards) {
  const TemporaryFolder folder;
  std::string path;
  {
    Job job(2, 4);
    job.plain.assign(numbered({300, 7}, 1));
    job.table.assign(numbered({11, 5}, 1000));
    path = job.checkpoint.save(folder.path().string(), 5);
  }
  for (const int servers : {1, 3}) {
    Job job(servers, 3);
    job.checkpoint.restore(path).assert_consumed();
    EXPECT_EQ(floats(job.plain.read()), floats(numbered({300, 7}, 1)));
    EXPECT_EQ(floats(job.table.read()), floats(numbered({11, 5}, 1000)));
  }
}

// Strategies of this process: the others restore the same from each other (tests/checkpoint).
TEST(CheckpointOfServers, IsRestoredByOtherStrategiesAndFromThem) {
  const TemporaryFolder folder;
  std::string from_servers;
  {
    Job job(2, 4);
    job.plain.assign(numbered({300, 7}, 1));
    job.table.assign(numbered({11, 5}, 1000));
    from_servers = job.checkpoint.save(folder.path().string(), 5);
  }
  std::string from_replicas;
  {
    const MirroredStrategy strategy(cpu_devices(2));
    const auto scope = strategy.scope();
    const Variable plain({.shape = {300, 7}, .name = "plain"});
    const Variable table({.shape = {11, 5}, .name = "table"});
    Checkpoint checkpoint(strategy);
    checkpoint.add("plain", plain);
    checkpoint.add("table", table);
    checkpoint.restore(from_servers).assert_consumed();
    for (const Tensor& component : table.components())
      EXPECT_EQ(floats(component), floats(numbered({11, 5}, 1000)));
    EXPECT_EQ(floats(plain.read()), floats(numbered({300, 7}, 1)));
    table.assign(numbered({11, 5}, 2000));
    from_replicas = checkpoint.save(folder.path().string(), 6);
  }
  Job job(1, 3);
  job.checkpoint.restore(from_replicas).assert_consumed();
  EXPECT_EQ(floats(job.plain.read()), floats(numbered({300, 7}, 1)));
  EXPECT_EQ(floats(job.table.read()), floats(numbered({11, 5}, 2000)));
}

}  // namespace
}  // namespace cohort
