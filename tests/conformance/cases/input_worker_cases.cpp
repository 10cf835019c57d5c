// Datasets distributed over a given number of workers, which are threads here.
#include <gmock/gmock.h>

#include "../../input/distributed_steps.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;

/// What each worker gets of range(rows).batch(batch).
std::vector<PartSteps> range_parts(int workers, int devices, std::int64_t rows, std::int64_t batch,
                                   const DistributeOptions& options = {}, bool drop_remainder = false) {
  return parts_by_worker(workers, devices, [=](const Strategy& strategy, int) {
    return strategy.distribute_dataset(Dataset<Tensor>::range(rows).batch(batch, drop_remainder), options);
  });
}

TEST(InputWorkerCase, Case085_TwoWorkersOfTwoReplicas) {
  EXPECT_THAT(range_parts(2, 2, 15, 4),
              ElementsAre(PartSteps{{{0}, {2}}, {{4}, {6}}, {{8}, {10}}, {{12}, {14}}},
                          PartSteps{{{1}, {3}}, {{5}, {7}}, {{9}, {11}}, {{13}, {}}}));
  EXPECT_THAT(range_parts(2, 2, 15, 4, {}, true),
              ElementsAre(PartSteps{{{0}, {2}}, {{4}, {6}}, {{8}, {10}}},
                          PartSteps{{{1}, {3}}, {{5}, {7}}, {{9}, {11}}}));
}

TEST(InputWorkerCase, Case089_ShardedByData) {
  for (const AutoShardPolicy policy : {AutoShardPolicy::kAuto, AutoShardPolicy::kData}) {
    EXPECT_THAT(range_parts(2, 1, 8, 3, {.auto_shard_policy = policy}),
                ElementsAre(PartSteps{{{0, 1}}, {{3, 4}}, {{6}}}, PartSteps{{{2}}, {{5}}, {{7}}}));
  }
}

TEST(InputWorkerCase, Case091_WorkersOfDifferentLength) {
  const auto by_worker = parts_by_worker(2, 1, [](const Strategy& strategy, int worker) {
    return strategy.distribute_datasets_from_function(
        [&](const InputContext&) { return Dataset<Tensor>::range(8 + worker).batch(2); });
  });
  EXPECT_THAT(by_worker, ElementsAre(PartSteps{{{0, 1}}, {{2, 3}}, {{4, 5}}, {{6, 7}}, {{}}},
                                     PartSteps{{{0, 1}}, {{2, 3}}, {{4, 5}}, {{6, 7}}, {{8}}}));
}

}  // namespace
}  // namespace cohort::testing
