// Strategies over the GPUs of one process. What replicas compute together must be what CPU devices
// compute, to the bit: the same scenario runs on both.
#include <functional>

#include <gmock/gmock.h>

#include <cuda_runtime_api.h>

#include <cohort/device/tensor.h>
#include <cohort/device/tensor_ops.h>
#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/hierarchical_copy_all_reduce.h>
#include <cohort/strategy/logical_device_strategy.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/train/moving_average.h>
#include <cohort/train/normalization/sync_batch_norm.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sgd.h>
#include <cohort/train/optimizers/sharded_optimizer.h>

#include "../strategy/strategies.h"
#include "calls_counted.h"

namespace cohort::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::Eq;

int gpus() { return static_cast<int>(gpu_devices().size()); }

MirroredStrategy on_gpus() { return MirroredStrategy(gpu_devices(), kPatient); }
MirroredStrategy on_cpus() { return mirrored(gpus()); }

/// Values that differ from replica to replica and have no exact sum.
Tensor noise(Shape shape, DType dtype, int seed, Device device) {
  Tensor tensor = Tensor::uninitialized(shape, DType::kFloat64);
  double value = 0.1 * (seed + 1);
  for (double& element : tensor.span<double>()) {
    value = 3.7 * value * (1 - value);
    element = value - 0.5;
  }
  return tensor.cast(dtype).to(device);
}

std::vector<Tensor> on_host(std::span<const Tensor> tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) copies.push_back(tensor.on_host().clone());
  return copies;
}

/// What a scenario leaves, with its strategy on GPUs and on CPUs.
using Scenario = std::function<std::vector<Tensor>(const Strategy&)>;

void expect_same(const Strategy& gpu, const Strategy& cpu, const Scenario& scenario) {
  const std::vector<Tensor> there = scenario(gpu);
  const std::vector<Tensor> here = scenario(cpu);
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i)
    EXPECT_TRUE(bitwise_equal(there[i], here[i])) << i << here[i] << there[i];
}

constexpr DType kTrained[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64};

/// Five steps, and no look at the variables in between.
std::vector<Tensor> trained(const Strategy& strategy, Optimizer& optimizer) {
  const auto scope = strategy.scope();
  std::vector<Variable> variables;
  for (const DType dtype : kTrained)
    variables.emplace_back(VariableOptions{.initial_value = noise({3, 5}, dtype, 7, Device())});
  // Large enough that replicas which share an optimizer do not copy it.
  variables.emplace_back(VariableOptions{.initial_value = noise({300, 71}, DType::kFloat32, 7, Device())});
  for (int step = 0; step < 5; ++step) {
    strategy.run([&](ReplicaContext& replica) {
      std::vector<GradientAndVariable> gradients;
      for (const Variable& variable : variables) {
        const int seed = step * 16 + replica.replica_id_in_sync_group();
        gradients.push_back({noise(variable.shape(), variable.dtype(), seed, replica.device()), variable});
      }
      optimizer.apply_gradients(gradients);
    });
  }
  std::vector<Tensor> components;
  for (const Variable& variable : variables) {
    for (const Tensor& component : on_host(variable.components())) components.push_back(component);
  }
  return components;
}

Scenario training_with_sgd() {
  return [](const Strategy& strategy) {
    Sgd optimizer({.learning_rate = 0.1});
    return trained(strategy, optimizer);
  };
}

Scenario training_with_momentum() {
  return [](const Strategy& strategy) {
    Momentum optimizer({.learning_rate = 0.1, .nesterov = true});
    return trained(strategy, optimizer);
  };
}

Scenario training_with_adam() {
  return [](const Strategy& strategy) {
    Adam optimizer;
    return trained(strategy, optimizer);
  };
}

Scenario training_in_shares() {
  return [](const Strategy& strategy) {
    ShardedOptimizer optimizer(std::make_unique<Adam>());
    return trained(strategy, optimizer);
  };
}

TEST(GpuOneDevice, Trains) {
  const OneDeviceStrategy gpu(gpu_devices().back());
  const OneDeviceStrategy cpu(Device::cpu(0));
  for (const Scenario& scenario : {training_with_sgd(), training_with_momentum(), training_with_adam()})
    expect_same(gpu, cpu, scenario);
  expect_same(gpu, cpu, training_in_shares());
}

TEST(GpuMirrored, Trains) {
  for (const Scenario& scenario : {training_with_sgd(), training_with_momentum(), training_with_adam()})
    expect_same(on_gpus(), on_cpus(), scenario);
  expect_same(on_gpus(), on_cpus(), training_in_shares());
}

/// A step of a batch normalization, forward and backward.
std::vector<Tensor> normalized(const Strategy& strategy) {
  const auto scope = strategy.scope();
  const SyncBatchNorm norm(3);
  const auto outcomes = strategy.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const Tensor input = noise({4 + id, 3}, DType::kFloat32, id, replica.device());
    const NormalizedBatch batch = norm.forward(input);
    const BatchNormGradients by = norm.backward(batch.output, input, batch.moments);
    EXPECT_EQ(batch.output.device(), replica.device());
    EXPECT_EQ(by.input.device(), replica.device());
    return on_host(std::vector<Tensor>{batch.output, by.input, by.gamma, by.beta, norm.infer(input),
                                       norm.moving_mean().read(), norm.moving_variance().read()});
  });
  std::vector<Tensor> all;
  for (const std::vector<Tensor>& of_replica : strategy.local_results(outcomes))
    all.insert(all.end(), of_replica.begin(), of_replica.end());
  return all;
}

TEST(GpuMirrored, NormalizesBatches) { expect_same(on_gpus(), on_cpus(), normalized); }

TEST(GpuMirrored, TakesAllGpusByDefault) {
  EXPECT_THAT(MirroredStrategy().extended().worker_devices(), ElementsAreArray(gpu_devices()));
}

TEST(GpuMirrored, RunsEachReplicaWithItsDeviceCurrent) {
  const MirroredStrategy strategy = on_gpus();
  strategy.run([](const ReplicaContext& replica) {
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, replica.device().index());
  });
}

/// Every collective of a replica, of tensors on its device and of numbers.
std::vector<Tensor> communicated(const Strategy& strategy) {
  const auto results = strategy.run([](const ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const Tensor own = noise({4, 3}, DType::kFloat32, id, replica.device());
    const std::vector<Tensor> many{own, noise({5}, DType::kFloat32, id, replica.device()),
                                   noise({2}, DType::kFloat64, id, replica.device())};
    std::vector<Tensor> outcomes{replica.all_reduce(ReduceOp::kSum, own),
                                 replica.all_reduce(ReduceOp::kMean, own), replica.all_gather(own, 0),
                                 replica.all_gather(own, 1),
                                 Tensor::scalar(replica.all_reduce(ReduceOp::kSum, 1.0))};
    for (const Tensor& sum : replica.all_reduce(ReduceOp::kSum, many)) outcomes.push_back(sum);
    replica.all_reduce_in_place(ReduceOp::kSum, many);
    for (const Tensor& sum : many) outcomes.push_back(sum);
    return on_host(outcomes);
  });
  std::vector<Tensor> all;
  for (const std::vector<Tensor>& of_replica : strategy.local_results(results)) {
    for (const Tensor& outcome : of_replica) all.push_back(outcome);
  }
  return all;
}

TEST(GpuMirrored, CommunicatesInReplicas) { expect_same(on_gpus(), on_cpus(), communicated); }

TEST(GpuMirrored, LeavesResultsOnTheDevicesOfTheReplicas) {
  const MirroredStrategy strategy = on_gpus();
  strategy.run([](const ReplicaContext& replica) {
    const Tensor own = Tensor::full({3}, DType::kFloat32, 1, replica.device());
    EXPECT_EQ(replica.all_reduce(ReduceOp::kSum, own).device(), replica.device());
    EXPECT_EQ(replica.all_gather(own, 0).device(), replica.device());
  });
}

/// What the calling thread does with the replicas' tensors.
std::vector<Tensor> reduced_across(const Strategy& strategy) {
  const auto values = strategy.run([](const ReplicaContext& replica) {
    return noise({4, 3}, DType::kFloat32, replica.replica_id_in_sync_group(), replica.device());
  });
  const std::vector<Tensor> outcomes{
      strategy.reduce(ReduceOp::kSum, values), strategy.reduce(ReduceOp::kMean, values),
      strategy.reduce(ReduceOp::kSum, values, {0}), strategy.reduce(ReduceOp::kMean, values, {0, 1}),
      strategy.gather(values, 0)};
  return on_host(outcomes);
}

TEST(GpuMirrored, ReducesAcrossReplicas) { expect_same(on_gpus(), on_cpus(), reduced_across); }

TEST(GpuMirrored, ReducesHierarchically) {
  const auto with_copies = [](std::vector<Device> devices) {
    return MirroredStrategy(std::move(devices), kPatient, std::make_shared<HierarchicalCopyAllReduce>());
  };
  expect_same(with_copies(gpu_devices()), with_copies(cpu_devices(gpus())), reduced_across);
}

/// Variables of every kind, written by replicas and from outside.
std::vector<Tensor> written(const Strategy& strategy) {
  const auto scope = strategy.scope();
  std::vector<Variable> variables;
  for (const auto aggregation :
       {VariableAggregation::kSum, VariableAggregation::kMean, VariableAggregation::kOnlyFirstReplica}) {
    variables.emplace_back(VariableOptions{.shape = {6, 2}, .aggregation = aggregation});
  }
  const Variable on_read({.shape = {6, 2},
                          .synchronization = VariableSynchronization::kOnRead,
                          .aggregation = VariableAggregation::kSum});
  strategy.run([&](const ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const Tensor value = noise({6, 2}, DType::kFloat32, id, replica.device());
    const Tensor rows = Tensor::from({std::int64_t{4}, std::int64_t{1}, std::int64_t{4}});
    for (const Variable& variable : variables) {
      variable.assign(value);
      variable.assign_add(value);
      variable.assign_sub(value.rows(0, 6));
      variable.scatter_add(
          {noise({3, 2}, DType::kFloat32, id, replica.device()), rows.to(replica.device()), {6, 2}});
      variable.scatter_mul({noise({3, 2}, DType::kFloat32, id, replica.device()), rows, {6, 2}});
    }
    on_read.assign(value);
    on_read.assign_add(value);
  });
  std::vector<Tensor> outcomes{on_read.read()};
  for (const Variable& variable : variables) {
    variable.assign_add(noise({6, 2}, DType::kFloat32, 9, Device()));
    outcomes.push_back(variable.read());
    for (const Tensor& component : variable.components()) outcomes.push_back(component);
  }
  assign_moving_average(variables.front(), noise({6, 2}, DType::kFloat32, 11, Device()), 0.9);
  outcomes.push_back(variables.front().read());
  return on_host(outcomes);
}

TEST(GpuMirrored, WritesVariables) { expect_same(on_gpus(), on_cpus(), written); }

TEST(GpuMirrored, KeepsAComponentOnEachGpu) {
  const MirroredStrategy strategy = on_gpus();
  const auto scope = strategy.scope();
  const Variable variable({.shape = {3}});
  std::vector<Device> devices;
  for (const Tensor& component : variable.components()) devices.push_back(component.device());
  EXPECT_THAT(devices, ElementsAreArray(gpu_devices()));
}

TEST(GpuMirrored, TakesGpusOrCpusOnly) {
  std::vector<Device> mixed = gpu_devices();
  mixed.push_back(Device::cpu(0));
  EXPECT_THAT([&] { return MirroredStrategy(mixed); },
              ::testing::ThrowsMessage<InvalidArgument>(
                  ::testing::AllOf(::testing::HasSubstr("cuda:0"), ::testing::HasSubstr("cpu:0"))));
}

/// Small whole numbers, which have the same sum in every order.
std::vector<Tensor> trained_centrally(const Strategy& strategy) {
  const auto scope = strategy.scope();
  const Variable weights({.shape = {4}});
  Sgd optimizer({.learning_rate = 0.5});
  for (int step = 0; step < 3; ++step) {
    strategy.run([&](const ReplicaContext& replica) {
      const double slope = replica.replica_id_in_sync_group() + step;
      optimizer.apply_gradients({{Tensor::full({4}, DType::kFloat32, slope, replica.device()), weights}});
    });
  }
  std::vector<Tensor> outcomes{weights.read()};
  return on_host(outcomes);
}

TEST(GpuCentralStorage, KeepsVariablesOnTheHostOrOnTheOnlyGpu) {
  const CentralStorageStrategy gpu;
  EXPECT_THAT(gpu.extended().worker_devices(), ElementsAreArray(gpu_devices()));
  EXPECT_THAT(gpu.extended().parameter_devices(), Each(Eq(gpus() == 1 ? gpu_devices().front() : Device())));
  expect_same(gpu, CentralStorageStrategy(cpu_devices(gpus())), trained_centrally);
  expect_same(CentralStorageStrategy(gpu_devices(), gpu_devices().back()),
              CentralStorageStrategy(cpu_devices(gpus())), trained_centrally);
}

TEST(GpuLogicalDevices, SplitTensorsAmongTheGpusOfAReplica) {
  const LogicalDeviceStrategy strategy(DeviceAssignment({gpu_devices()}));
  const Tensor whole = noise({6, 12}, DType::kFloat32, 3, Device());
  const auto tiles = strategy.run([&] {
    const int columns[] = {1, gpus()};
    return strategy.split_to_logical_devices(whole.to(gpu_devices().front()), columns);
  });
  const std::vector<std::vector<Tensor>> by_replica = strategy.local_results(tiles);
  std::vector<Tensor> parts;
  for (const Tensor& tile : by_replica.front()) {
    EXPECT_EQ(tile.device(), gpu_devices()[parts.size()]);
    parts.push_back(tile.on_host());
  }
  EXPECT_TRUE(bitwise_equal(concatenate(parts, 1), whole));
}

/// A layer on each of a replica's two devices.
std::vector<Tensor> trained_in_pairs(const LogicalDeviceStrategy& strategy) {
  const auto scope = strategy.scope();
  std::vector<Variable> layers;
  for (const int device : {0, 1}) {
    const auto there = strategy.logical_device(device);
    layers.emplace_back(VariableOptions{.shape = {50}});
  }
  Momentum optimizer({.learning_rate = 0.1});
  for (int step = 0; step < 5; ++step) {
    strategy.run([&](const ReplicaContext& replica) {
      std::vector<GradientAndVariable> gradients;
      for (const Variable& layer : layers) {
        const int seed = step * 16 + replica.replica_id_in_sync_group();
        gradients.push_back({noise({50}, DType::kFloat32, seed, layer.read().device()), layer});
      }
      optimizer.apply_gradients(gradients);
    });
  }
  std::vector<Tensor> outcomes;
  for (const Variable& layer : layers) {
    for (const Tensor& component : layer.components()) outcomes.push_back(component);
  }
  return on_host(outcomes);
}

TEST(GpuLogicalDevices, TrainOnEachGpuOfEachReplica) {
  if (gpus() < 4) GTEST_SKIP() << "needs 4 GPUs";
  const auto in_pairs = [](std::vector<Device> devices) {
    return LogicalDeviceStrategy(DeviceAssignment({{devices[0], devices[1]}, {devices[2], devices[3]}}),
                                 kPatient);
  };
  const std::vector<Tensor> there = trained_in_pairs(in_pairs(gpu_devices()));
  const std::vector<Tensor> here = trained_in_pairs(in_pairs(cpu_devices(4)));
  for (std::size_t i = 0; i < here.size(); ++i)
    EXPECT_TRUE(bitwise_equal(there[i], here[i])) << i << here[i] << there[i];
}

/// A step whose tensors stay where they are.
template <class Step>
std::uint64_t calls_after_first_steps(std::initializer_list<const char*> functions, Step step) {
  for (int i = 0; i < 3; ++i) step(i);
  const std::uint64_t before = calls_of(functions);
  for (int i = 0; i < 10; ++i) step(i);
  return calls_of(functions) - before;
}

class GpuSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (call_counter() == nullptr) GTEST_SKIP() << "only the stand-in counts calls";
  }
};

TEST_F(GpuSteps, OnOneDeviceNeitherAllocateNorWait) {
  const OneDeviceStrategy strategy(gpu_devices().front());
  const auto scope = strategy.scope();
  const Variable weights({.shape = {64}});
  Adam optimizer;
  const Tensor batch = noise({64}, DType::kFloat32, 1, Device());
  const auto step = [&](int) {
    strategy.run([&](const ReplicaContext& replica) {
      optimizer.apply_gradients({{batch.to(replica.device()), weights}});
    });
  };
  EXPECT_EQ(calls_after_first_steps(kDearCalls, step), 0U);
  EXPECT_EQ(calls_after_first_steps(kWaitingCalls, step), 0U);
}

TEST_F(GpuSteps, ThroughTheHostAllocateNothing) {
  const MirroredStrategy strategy = on_gpus();
  const auto scope = strategy.scope();
  const Variable weights({.shape = {64}});
  Sgd optimizer;
  const auto step = [&](int) {
    strategy.run([&](const ReplicaContext& replica) {
      const Tensor gradient = Tensor::full({64}, DType::kFloat32, 1, replica.device());
      optimizer.apply_gradients({{gradient, weights}});
    });
  };
  EXPECT_EQ(calls_after_first_steps(kDearCalls, step), 0U);
}

}  // namespace
}  // namespace cohort::testing
