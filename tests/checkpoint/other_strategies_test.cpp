// Checkpoints of several workers, and of one strategy for another.
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>

#include "../strategy/fake_cluster.h"
#include "../strategy/strategies.h"
#include "temporary_folder.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

// What one strategy saves, each of them restores, with other devices and other numbers of workers.

struct Trainer {
  std::string name;
  int workers;
  std::function<Strategy(Bootstrap&)> make;
};

std::vector<Trainer> trainers() {
  std::vector<Trainer> trainers{
      {"Default", 1, [](Bootstrap&) { return get_strategy(); }},
      {"OneDevice", 1, [](Bootstrap&) { return OneDeviceStrategy(); }},
      {"Mirrored", 1, [](Bootstrap&) { return mirrored(3); }},
      {"CentralStorage", 1, [](Bootstrap&) { return CentralStorageStrategy(cpu_devices(2)); }}};
  for (int workers = 1; workers <= 4; ++workers) {
    trainers.push_back({"Workers" + std::to_string(workers), workers, [](Bootstrap& worker) {
                          return MultiWorkerMirroredStrategy(worker, kPatient, cpu_devices(1));
                        }});
  }
  return trainers;
}

/// Elements whose bits do not survive a conversion: a NaN with a payload, a negative zero, a denormal number.
std::vector<float> odd_floats(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 0.1F * static_cast<float>(i);
  const std::uint32_t nan = 0x7fc12345;
  std::memcpy(values.data(), &nan, sizeof nan);
  values[1] = -0.0F;
  values[2] = std::numeric_limits<float>::denorm_min();
  return values;
}

const Tensor kTable = tensor_of(odd_floats(111), {37, 3});
const Tensor kCounter = Tensor::scalar((std::int64_t{1} << 53) + 1);
constexpr double kMean = 0.7;

/// What a job of each strategy has: `add` adds it to a checkpoint.
struct Content {
  explicit Content(bool is_new)
      : table({.initial_value = is_new ? Tensor::zeros(kTable.shape(), DType::kFloat32) : kTable}),
        counter({.initial_value = is_new ? Tensor::scalar(std::int64_t{0}) : kCounter,
                 .aggregation = VariableAggregation::kOnlyFirstReplica}),
        mean({.initial_value = Tensor::scalar(is_new ? 0.0 : kMean),
              .synchronization = VariableSynchronization::kOnRead,
              .aggregation = VariableAggregation::kOnlyFirstReplica}),
        epoch(is_new ? 0 : 3) {}

  void add_to(Checkpoint& checkpoint) {
    checkpoint.add("table", table);
    checkpoint.add("counter", counter);
    checkpoint.add("mean", mean);
    checkpoint.add("epoch", epoch);
  }

  Variable table;
  Variable counter;
  Variable mean;
  std::int32_t epoch;
};

class RestoredByOthers : public ::testing::TestWithParam<Trainer> {};
INSTANTIATE_TEST_SUITE_P(Strategies, RestoredByOthers, ::testing::ValuesIn(trainers()),
                         [](const auto& trainer) { return trainer.param.name; });

TEST_P(RestoredByOthers, HasTheSameBits) {
  const TemporaryFolder folder;
  const std::string path = folder.path("step-1");
  for_each_worker(GetParam().workers, [&](Bootstrap& worker) {
    const Strategy strategy = GetParam().make(worker);
    const auto scope = strategy.scope();
    Content content(false);
    Checkpoint checkpoint(strategy);
    content.add_to(checkpoint);
    checkpoint.save(folder.path().string(), 1);
  });
  for (const Trainer& other : trainers()) {
    for_each_worker(other.workers, [&](Bootstrap& worker) {
      const Strategy strategy = other.make(worker);
      const auto scope = strategy.scope();
      Content content(true);
      Checkpoint checkpoint(strategy);
      content.add_to(checkpoint);
      checkpoint.restore(path).assert_consumed();
      for (const Tensor& component : content.table.components())
        EXPECT_TRUE(bitwise_equal(component, kTable)) << other.name;
      EXPECT_TRUE(bitwise_equal(content.table.read(), kTable)) << other.name;
      EXPECT_TRUE(bitwise_equal(content.counter.read(), kCounter)) << other.name;
      EXPECT_TRUE(bitwise_equal(content.mean.read(), Tensor::scalar(kMean))) << other.name;
      EXPECT_EQ(content.epoch, 3) << other.name;
    });
  }
}

// Checkpoints of workers that are threads of this process.

class MultiWorkerCheckpoint : public ::testing::TestWithParam<int> {
 protected:
  template <class Check>
  void on_every_worker(Check check) {
    for_each_worker(GetParam(), [&](Bootstrap& worker) { check(worker, folder_.path().string()); });
  }
  const TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Workers, MultiWorkerCheckpoint, ::testing::Values(1, 2, 3, 4, 7),
                         ::testing::PrintToStringParamName());

TEST_P(MultiWorkerCheckpoint, IsSharedEvenlyAndRestored) {
  on_every_worker([](Bootstrap& worker, const std::string& folder) {
    for (const int devices : {1, 2})
      check_saving_and_restoring(worker, devices, folder + "/" + std::to_string(devices));
  });
}
TEST_P(MultiWorkerCheckpoint, HasTheFirstWorkersOwnState) {
  on_every_worker(check_values_of_the_first_worker);
}
TEST_P(MultiWorkerCheckpoint, FailsOnAllWorkers) { on_every_worker(check_failure_of_one_worker); }
TEST_P(MultiWorkerCheckpoint, HasTheSameValuesOnAllWorkers) { on_every_worker(check_other_values); }
TEST_P(MultiWorkerCheckpoint, IsSavedInTheBackground) { on_every_worker(check_saving_in_background); }
TEST_P(MultiWorkerCheckpoint, HasWhatMetricsHaveSeen) { on_every_worker(check_metrics_in_checkpoints); }
TEST_P(MultiWorkerCheckpoint, HasSharedSlotsAsWholeOnes) {
  on_every_worker([](Bootstrap& worker, const std::string& folder) {
    for (const int devices : {1, 2})
      check_checkpoints_of_shares(worker, devices, folder + "/" + std::to_string(devices));
  });
}
TEST_P(MultiWorkerCheckpoint, HasValuesOfOtherPrograms) {
  on_every_worker([](Bootstrap& worker, const std::string& folder) {
    for (const int devices : {1, 2})
      check_loading_safetensors(worker, devices, folder + "/" + std::to_string(devices));
  });
}
TEST_P(MultiWorkerCheckpoint, FailsOnAllWorkersWhereAValueFails) {
  on_every_worker(check_a_value_that_fails);
}

/// A variable that `savers` workers save and `restorers` workers restore.
TEST_P(MultiWorkerCheckpoint, IsRestoredByOtherNumbersOfWorkers) {
  const std::string folder = folder_.path().string();
  const Tensor values = Tensor::from(std::vector<double>{1, 2, 3, 4, 5, 6, 7});
  for_each_worker(GetParam(), [&](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, kPatient, cpu_devices(1));
    const auto scope = strategy.scope();
    const Variable variable({.initial_value = values});
    Checkpoint checkpoint(strategy);
    checkpoint.add("v", variable);
    checkpoint.save(folder, 1);
  });
  for (const int restorers : {1, 2, 3, 5}) {
    for_each_worker(restorers, [&](Bootstrap& worker) {
      const MultiWorkerMirroredStrategy strategy(worker, kPatient, cpu_devices(1));
      const auto scope = strategy.scope();
      const Variable variable({.initial_value = Tensor::zeros({7}, DType::kFloat64)});
      Checkpoint checkpoint(strategy);
      checkpoint.add("v", variable);
      checkpoint.restore(folder + "/step-1").assert_consumed();
      EXPECT_TRUE(bitwise_equal(variable.read(), values));
    });
  }
}

}  // namespace
}  // namespace cohort::testing
