// How a dataset is divided among workers, which are threads here.
#include <mutex>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cohort/input/distribute.h>
#include <cohort/input/files/fixed_length_record.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../strategy/fake_cluster.h"
#include "batches.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

constexpr DistributeOptions kOff{.auto_shard_policy = AutoShardPolicy::kOff};
constexpr DistributeOptions kFile{.auto_shard_policy = AutoShardPolicy::kFile};
constexpr DistributeOptions kHint{.auto_shard_policy = AutoShardPolicy::kHint};

/// What each worker gets of range(rows).batch(batch).
std::vector<PartSteps> range_parts(int workers, int devices, std::int64_t rows, std::int64_t batch,
                                   const DistributeOptions& options, bool drop_remainder = false) {
  return parts_by_worker(workers, devices, [=](const Strategy& strategy, int) {
    return strategy.distribute_dataset(range_dataset(rows).batch(batch, drop_remainder), options);
  });
}

TEST(ShardByData, DealsThePartsOfABatchToTheWorkersInTurn) {
  EXPECT_THAT(range_parts(2, 2, 15, 4, {}),
              ElementsAre(PartSteps{{{0}, {2}}, {{4}, {6}}, {{8}, {10}}, {{12}, {14}}},
                          PartSteps{{{1}, {3}}, {{5}, {7}}, {{9}, {11}}, {{13}, {}}}));
}

TEST(ShardByData, RefusesWorkersThatReadDifferentDatasets) {
  for_each_worker(3, [](Bootstrap& worker) {
    const bool is_odd = worker.rank() == 1;
    const auto strategy = worker_strategy(worker, 1);
    const auto distributed = strategy.distribute_dataset(range_dataset(is_odd ? 9 : 8).batch(2));
    EXPECT_THAT([&] { static_cast<void>(distributed.begin()); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("worker 1 (host "),
                                                     HasSubstr("has 5 batches, each of the other 2 has 4"),
                                                     HasSubstr("kOff"))));
  });
}

TEST(ShardByData, NamesAFileThatOneWorkerMisses) {
  for_each_worker(2, [](Bootstrap& worker) {
    const auto strategy = worker_strategy(worker, 1);
    const std::string file = worker.rank() == 0 ? "/proc/self/exe" : "/not/there";
    const auto distributed =
        strategy.distribute_dataset(fixed_length_record_dataset({file}, {.record_bytes = 1}).take(4).batch(2),
                                    {.auto_shard_policy = AutoShardPolicy::kData});
    EXPECT_THAT([&] { static_cast<void>(distributed.begin()); },
                ThrowsMessage<Error>(HasSubstr("'/not/there'")));
  });
}

TEST(ShardOff, GivesEveryWorkerEverything) {
  EXPECT_THAT(range_parts(2, 1, 8, 4, kOff), Each(PartSteps{{{0, 1}}, {{2, 3}}, {{4, 5}}, {{6, 7}}}));
  EXPECT_THAT(range_parts(2, 2, 8, 8, kOff), Each(PartSteps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}}));
}

TEST(ShardOff, CutsThePartialBatchLikeAWholeOne) {
  EXPECT_THAT(range_parts(2, 1, 7, 6, kOff), Each(PartSteps{{{0, 1, 2}}, {{3, 4, 5}}, {{6}}}));
  EXPECT_THAT(range_parts(2, 1, 12, 8, kOff),
              Each(PartSteps{{{0, 1, 2, 3}}, {{4, 5, 6, 7}}, {{8, 9, 10, 11}}}));
  EXPECT_THAT(range_parts(2, 1, 7, 6, kOff, true), Each(PartSteps{{{0, 1, 2}}, {{3, 4, 5}}}));
  EXPECT_THAT(range_parts(2, 2, 9, 8, kOff), Each(PartSteps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8}, {}}}));
}

TEST(ShardOff, HasNoStepInWhichNobodyHasData) {
  EXPECT_THAT(range_parts(2, 1, 3, 1, kOff), Each(PartSteps{{{0}}, {{1}}, {{2}}}));
  EXPECT_THAT(range_parts(3, 2, 2, 2, kOff), Each(PartSteps{{{0}, {1}}}));
}

TEST(ShardByFile, NeedsFiles) {
  for_each_worker(2, [](Bootstrap& worker) {
    const auto strategy = worker_strategy(worker, 1);
    EXPECT_THAT([&] { static_cast<void>(strategy.distribute_dataset(range_dataset(8).batch(4), kFile)); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("reads no files"), HasSubstr("kData"))));
  });
}

TEST(ShardByFile, MeansNothingToOneWorker) {
  const MirroredStrategy strategy(cpu_devices(3));
  for (const DistributeOptions& options : {kFile, kHint, kOff}) {
    EXPECT_EQ(parts_of(strategy.distribute_dataset(range_dataset(8).batch(4), options)),
              (PartSteps{{{0, 1}, {2}, {3}}, {{4, 5}, {6}, {7}}}));
  }
}

TEST(ShardByHint, ChangesNothingWithoutHints) {
  EXPECT_THAT(range_parts(2, 1, 4, 4, kHint), Each(PartSteps{{{0, 1}}, {{2, 3}}}));
}

TEST(ShardByHint, KeepsTheGlobalBatchOfAStep) {
  // Worker 1 begins at another place of the sizes 2, 1.
  EXPECT_THAT(range_parts(2, 1, 6, 3, kHint), ElementsAre(PartSteps{{{0, 1}}, {{2}}, {{3, 4}}, {{5}}},
                                                          PartSteps{{{0}}, {{1, 2}}, {{3}}, {{4, 5}}}));
}

// Datasets distributed among workers, which are threads here: each worker describes the whole dataset and
// keeps its own part.

/// What each worker got: its steps, by rank.
template <class MakeDataset>
std::vector<Steps> steps_by_worker(int workers, MakeDataset make_dataset) {
  std::vector<Steps> by_worker(static_cast<std::size_t>(workers));
  for_each_worker(workers, [&](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60});
    for (const auto& batch : strategy.distribute_dataset(make_dataset())) {
      by_worker[static_cast<std::size_t>(worker.rank())].push_back(elements_of(batch[0]));
    }
  });
  return by_worker;
}

std::vector<Steps> range_steps(int workers, std::int64_t rows, std::int64_t batch,
                               bool drop_remainder = false) {
  return steps_by_worker(workers, [=] { return range_dataset(rows).batch(batch, drop_remainder); });
}

TEST(DistributeToWorkers, SplitsEachGlobalBatch) {
  EXPECT_THAT(range_steps(2, 10, 4), ElementsAre(Steps{{0, 1}, {4, 5}, {8}}, Steps{{2, 3}, {6, 7}, {9}}));
  EXPECT_THAT(range_steps(2, 13, 5),
              ElementsAre(Steps{{0, 1, 2}, {5, 6, 7}, {10, 11}}, Steps{{3, 4}, {8, 9}, {12}}));
  EXPECT_THAT(range_steps(2, 12, 6, true),
              ElementsAre(Steps{{0, 1, 2}, {6, 7, 8}}, Steps{{3, 4, 5}, {9, 10, 11}}));
  EXPECT_THAT(range_steps(3, 4, 4), ElementsAre(Steps{{0, 1}}, Steps{{2}}, Steps{{3}}));
}

TEST(DistributeToWorkers, TakesAllWorkersThroughTheSameNumberOfSteps) {
  EXPECT_THAT(range_steps(2, 9, 2),
              ElementsAre(Steps{{0}, {2}, {4}, {6}, {8}}, Steps{{1}, {3}, {5}, {7}, {}}));
  EXPECT_THAT(range_steps(2, 4, 1), ElementsAre(Steps{{0}, {1}, {2}, {3}}, Steps{{}, {}, {}, {}}));
  for (const Steps& steps : range_steps(4, 11, 3)) EXPECT_THAT(steps, SizeIs(4));
}

TEST(DistributeToWorkers, DeliversEveryRowExactlyOnce) {
  for (const int workers : {1, 2, 3, 4, 7}) {
    for (const std::int64_t batch : {1, 5, 8, 64}) {
      const auto shuffled = [&] { return range_dataset(50).shuffle({.seed = 9}).batch(batch); };
      std::multiset<std::int64_t> delivered;
      for (const Steps& steps : steps_by_worker(workers, shuffled)) {
        for (const Rows& part : steps) delivered.insert(part.begin(), part.end());
      }
      const Rows all = elements_of(range(50));
      EXPECT_EQ(delivered, std::multiset<std::int64_t>(all.begin(), all.end())) << workers << ", " << batch;
    }
  }
}

TEST(DistributeToWorkers, MakesUpTheBatchOfEachStep) {
  const auto shuffled = [] { return range_dataset(23).shuffle({.seed = 9}).batch(6).repeat(2); };
  const Steps batches = steps_of(shuffled());
  const auto by_worker = steps_by_worker(3, shuffled);
  for (std::size_t step = 0; step < batches.size(); ++step) {
    Rows together;
    for (const Steps& steps : by_worker)
      together.insert(together.end(), steps[step].begin(), steps[step].end());
    EXPECT_EQ(together, batches[step]);
  }
}

TEST(DistributeToWorkers, AveragesPartialBatchesByElement) {
  for_each_worker(2, [](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60});
    std::vector<double> means;
    for (const auto& batch : strategy.distribute_dataset(range_dataset(7).batch(4))) {
      means.push_back(strategy.reduce(ReduceOp::kMean, batch, 0).item<double>());
    }
    EXPECT_THAT(means, ElementsAre(1.5, 5));
  });
}

}  // namespace
}  // namespace cohort::testing
