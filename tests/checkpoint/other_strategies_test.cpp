// What one strategy saves, each of them restores, with other devices and other numbers of workers.
#include <cohort/checkpoint/checkpoint.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>

#include "../strategy/fake_cluster.h"
#include "../strategy/strategies.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

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

}  // namespace
}  // namespace cohort::testing
