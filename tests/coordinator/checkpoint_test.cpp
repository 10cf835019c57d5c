// Variables on servers and what optimizers keep for them, saved and restored by the chief.
#include <cohort/checkpoint/checkpoint.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <cohort/server/parameter_server_strategy.h>
#include <cohort/server/sharded_variable.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/optimizers/adam.h>

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

/// Adam on a dense variable and on rows of a table, wherever the current strategy keeps them.
class Training {
 public:
  explicit Training(const Strategy& strategy) : strategy_(strategy), checkpoint_(strategy) {
    checkpoint_.add("dense", dense_);
    checkpoint_.add("table", table_);
    checkpoint_.add("adam", optimizer_, {{dense_}}, {{table_}});
  }

  void steps(int first, int last) {
    for (int step = first; step <= last; ++step) {
      strategy_.run([&] {
        const auto number = static_cast<float>(step);
        const std::vector<std::int64_t> rows{step % 11, (3 * step) % 11};
        const IndexedSlices gradient{numbered({2, 5}, number), Tensor::from(rows), table_.shape()};
        optimizer_.apply_sparse_gradients(table_.split_gradient(gradient),
                                          {{numbered({4}, -number), dense_}});
      });
    }
  }

  [[nodiscard]] Checkpoint& checkpoint() { return checkpoint_; }
  [[nodiscard]] std::vector<std::vector<float>> values() const {
    return {floats(dense_.read()), floats(table_.read())};
  }

 private:
  Strategy strategy_;
  Variable dense_{{.shape = {4}, .name = "dense"}};
  ShardedVariable table_{{.shape = {11, 5}, .name = "table"}};
  Adam optimizer_{{.learning_rate = 0.5}};
  Checkpoint checkpoint_;
};

/// Under servers of its own.
template <class Use>
void train_on_servers(int servers, int shards, Use use) {
  const TaskProcesses tasks(0, servers);
  const ParameterServerStrategy strategy(tasks.chief(),
                                         {.variable_partitioner = FixedShardsPartitioner(shards)});
  const auto scope = strategy.scope();
  Training training(strategy);
  use(training);
}

TEST(CheckpointOfServers, HasTheSlotsThatServersKeep) {
  const TemporaryFolder folder;
  std::string path;
  std::vector<std::vector<float>> undisturbed;
  train_on_servers(2, 4, [&](Training& training) {
    training.steps(1, 5);
    path = training.checkpoint().save(folder.path().string(), 5);
    training.steps(6, 9);
    undisturbed = training.values();
  });
  const auto resume = [&](Training& training) {
    training.steps(1, 1);  // what the restore finds does not matter
    training.checkpoint().restore(path).assert_consumed();
    training.steps(6, 9);
    return training.values();
  };
  for (const int servers : {1, 3})
    train_on_servers(servers, 2, [&](Training& training) { EXPECT_EQ(resume(training), undisturbed); });

  // Rows that no gradient names stay on servers, and move with their moments elsewhere: saved there, restored
  // here.
  {
    const OneDeviceStrategy strategy;
    const auto scope = strategy.scope();
    Training training(strategy);
    training.checkpoint().restore(path).assert_consumed();
    path = training.checkpoint().save(folder.path().string(), 6);
  }
  train_on_servers(2, 3, [&](Training& training) { EXPECT_EQ(resume(training), undisturbed); });
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
