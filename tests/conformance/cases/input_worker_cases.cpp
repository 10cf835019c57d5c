// Datasets distributed over two workers.
#include "../../input/distributed_steps.h"
#include "replicas.h"

namespace cohort::testing {
namespace {

/// Expects the first worker to get the steps `wanted[0]` for its replicas, and the second `wanted[1]`.
void expect_parts(int devices, const Distribution& distribution, const std::vector<PartSteps>& wanted) {
  as_workers(2, [&](Bootstrap& worker) {
    const Strategy strategy = worker_strategy(worker, devices);
    EXPECT_EQ(parts_of(distribution(strategy, worker.rank())),
              wanted[static_cast<std::size_t>(worker.rank())]);
  });
}

Distribution of_range(std::int64_t rows, std::int64_t batch, const DistributeOptions& options = {},
                      bool drop_remainder = false) {
  return [=](const Strategy& strategy, int) {
    return strategy.distribute_dataset(Dataset<Tensor>::range(rows).batch(batch, drop_remainder), options);
  };
}

TEST(InputWorkerCase, Case085_TwoWorkersOfTwoReplicas) {
  expect_parts(2, of_range(15, 4),
               {PartSteps{{{0}, {2}}, {{4}, {6}}, {{8}, {10}}, {{12}, {14}}},
                PartSteps{{{1}, {3}}, {{5}, {7}}, {{9}, {11}}, {{13}, {}}}});
  expect_parts(
      2, of_range(15, 4, {}, true),
      {PartSteps{{{0}, {2}}, {{4}, {6}}, {{8}, {10}}}, PartSteps{{{1}, {3}}, {{5}, {7}}, {{9}, {11}}}});
}

TEST(InputWorkerCase, Case089_ShardedByData) {
  for (const AutoShardPolicy policy : {AutoShardPolicy::kAuto, AutoShardPolicy::kData}) {
    expect_parts(1, of_range(8, 3, {.auto_shard_policy = policy}),
                 {PartSteps{{{0, 1}}, {{3, 4}}, {{6}}}, PartSteps{{{2}}, {{5}}, {{7}}}});
  }
}

TEST(InputWorkerCase, Case091_WorkersOfDifferentLength) {
  const Distribution longer_on_the_second = [](const Strategy& strategy, int worker) {
    return strategy.distribute_datasets_from_function(
        [&](const InputContext&) { return Dataset<Tensor>::range(8 + worker).batch(2); });
  };
  expect_parts(1, longer_on_the_second,
               {PartSteps{{{0, 1}}, {{2, 3}}, {{4, 5}}, {{6, 7}}, {{}}},
                PartSteps{{{0, 1}}, {{2, 3}}, {{4, 5}}, {{6, 7}}, {{8}}}});
}

}  // namespace
}  // namespace cohort::testing
