// Datasets that functions make for workers, or for single replicas.
#include <sstream>

#include <gmock/gmock.h>

#include <cohort/input/distribute.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>

#include "batches.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr InputOptions kPerReplica{.replication_mode = InputReplicationMode::kPerReplica};

TEST(InputContext, DividesTheGlobalBatch) {
  EXPECT_EQ((InputContext{.num_replicas_in_sync = 6}.per_replica_batch_size(12)), 2);
  EXPECT_THAT(([] { return InputContext{.num_replicas_in_sync = 4}.per_replica_batch_size(6); }),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("6 elements"), HasSubstr("4 replicas"))));
}

TEST(InputContext, NamesItsPipeline) {
  std::ostringstream text;
  text << InputContext{.num_input_pipelines = 2, .input_pipeline_id = 1, .num_replicas_in_sync = 6};
  EXPECT_EQ(text.str(), "InputContext(input pipeline id 1, total: 2)");
}

TEST(DistributeFunction, HandsReplicasTheElementsInTurn) {
  const MirroredStrategy strategy(cpu_devices(2));
  int calls = 0;
  const auto distributed = strategy.distribute_datasets_from_function([&](const InputContext& context) {
    ++calls;
    EXPECT_EQ(context.num_input_pipelines, 1);
    EXPECT_EQ(context.input_pipeline_id, 0);
    EXPECT_EQ(context.num_replicas_in_sync, 2);
    return range_dataset(9).batch(2);
  });
  const PartSteps steps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8}, {}}};
  EXPECT_EQ(parts_of(distributed), steps);
  EXPECT_EQ(parts_of(distributed), steps) << "in every pass";
  EXPECT_EQ(calls, 1);
}

TEST(DistributeFunction, LeavesOutAStepForWhichScalarsAreTooFew) {
  // There is no empty scalar.
  const MirroredStrategy strategy(cpu_devices(3));
  for (const auto& dataset : {range_dataset(10), counted_dataset(10)}) {
    const auto distributed =
        strategy.distribute_datasets_from_function([&](const InputContext&) { return dataset; });
    EXPECT_EQ(parts_of(distributed), (PartSteps{{{0}, {1}, {2}}, {{3}, {4}, {5}}, {{6}, {7}, {8}}}));
  }
}

TEST(DistributeFunction, MayMakeADatasetForEachReplica) {
  const MirroredStrategy strategy(cpu_devices(2));
  const auto distributed = strategy.distribute_datasets_from_function(
      [](const InputContext& context) {
        EXPECT_EQ(context.num_input_pipelines, 2);
        return range_dataset(3 + context.input_pipeline_id).batch(2);
      },
      kPerReplica);
  EXPECT_EQ(parts_of(distributed), (PartSteps{{{0, 1}, {0, 1}}, {{2}, {2, 3}}}));
}

TEST(DistributeFunction, GivesAReplicaEmptyBatchesUntilAllHaveEnded) {
  const MirroredStrategy strategy(cpu_devices(3));
  const auto distributed = strategy.distribute_datasets_from_function(
      [](const InputContext& context) { return range_dataset(2 * context.input_pipeline_id).batch(2); },
      kPerReplica);
  EXPECT_EQ(parts_of(distributed), (PartSteps{{{}, {0, 1}, {0, 1}}, {{}, {}, {2, 3}}}));
}

TEST(DistributeFunction, GivesEachWorkerItsPipeline) {
  const auto by_worker = parts_by_worker(3, 1, [](const Strategy& strategy, int worker) {
    return strategy.distribute_datasets_from_function([&](const InputContext& context) {
      EXPECT_EQ(context.num_input_pipelines, 3);
      EXPECT_EQ(context.input_pipeline_id, worker);
      return range_dataset(4 + worker).batch(4);
    });
  });
  EXPECT_THAT(by_worker, ElementsAre(PartSteps{{{0, 1, 2, 3}}, {{}}}, PartSteps{{{0, 1, 2, 3}}, {{4}}},
                                     PartSteps{{{0, 1, 2, 3}}, {{4, 5}}}));
}

TEST(DistributeFunction, TellsTheOtherWorkersWhenItThrows) {
  for_each_worker(2, [](Bootstrap& worker) {
    const auto strategy = worker_strategy(worker, 1);
    const auto distribute_and_read = [&] {
      const auto distributed = strategy.distribute_datasets_from_function([&](const InputContext& context) {
        if (context.input_pipeline_id == 1) throw std::runtime_error("no such folder");
        return counted_dataset(4).batch(2);
      });
      static_cast<void>(parts_of(distributed));
    };
    if (worker.rank() == 1)
      EXPECT_THAT(distribute_and_read, ThrowsMessage<std::runtime_error>("no such folder"));
    else
      EXPECT_THAT(distribute_and_read,
                  ThrowsMessage<Aborted>(AllOf(HasSubstr("worker 1"), HasSubstr("no such folder"))));
  });
}

TEST(InputOptions, PlaceBatchesOnTheReplicasDevices) {
  const MirroredStrategy strategy(cpu_devices(2));
  for (const bool fetches : {true, false}) {
    const InputOptions options{.fetch_to_device = fetches};
    for (const auto& batches : strategy.distribute_dataset(range_dataset(5).batch(4), {.input = options})) {
      EXPECT_EQ(batches[0].device(), Device::cpu(0));
      EXPECT_EQ(batches[1].device(), Device::cpu(fetches ? 1 : 0));
    }
    const auto from_function = strategy.distribute_datasets_from_function(
        [](const InputContext&) { return range_dataset(3).batch(1); }, options);
    for (const auto& batches : from_function) EXPECT_EQ(batches[1].device(), Device::cpu(fetches ? 1 : 0));
  }
}

TEST(InputOptions, CanMakeADatasetOnItsDevice) {
  const MirroredStrategy strategy(cpu_devices(2));
  const auto distributed = strategy.distribute_datasets_from_function(
      [](const InputContext& context) {
        EXPECT_EQ(current_device(), Device::cpu(context.input_pipeline_id));
        return Dataset<Tensor>::from_tensor_slices(range(4).to(*current_device())).batch(2);
      },
      {.fetch_to_device = false,
       .replication_mode = InputReplicationMode::kPerReplica,
       .place_dataset_on_device = true});
  for (const auto& batches : distributed) {
    EXPECT_EQ(elements_of(batches[0]), elements_of(batches[1]));
  }
}

TEST(InputOptions, AreCheckedTogether) {
  const MirroredStrategy strategy(cpu_devices(2));
  const auto distribute = [&](const InputOptions& options) {
    return [&strategy, options] {
      static_cast<void>(strategy.distribute_datasets_from_function(
          [](const InputContext&) { return range_dataset(4).batch(2); }, options));
    };
  };
  EXPECT_THAT(distribute({.fetch_to_device = false, .place_dataset_on_device = true}),
              ThrowsMessage<InvalidArgument>(HasSubstr("kPerReplica")));
  EXPECT_THAT(
      distribute({.replication_mode = InputReplicationMode::kPerReplica, .place_dataset_on_device = true}),
      ThrowsMessage<InvalidArgument>(HasSubstr("exclude each other")));
  EXPECT_THAT(distribute({.per_replica_buffer_size = -1}), ThrowsMessage<InvalidArgument>(HasSubstr("-1")));
  EXPECT_THAT([&] { return strategy.distribute_dataset(range_dataset(4).batch(2), {.input = kPerReplica}); },
              ThrowsMessage<Unimplemented>(HasSubstr("distribute_datasets_from_function")));
}

}  // namespace
}  // namespace cohort::testing
