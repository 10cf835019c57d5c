// Datasets distributed over two workers.
#include "../../input/distributed_steps.h"
#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

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

TEST(InputWorkerCase, DifferenceAnEndlessShardThatIsEmptyIsTheErrorOfAll) {
  as_workers(2, [&](Bootstrap& worker) {
    const Strategy strategy = worker_strategy(worker, 1);
    const auto endless = strategy.distribute_datasets_from_function(
        [&](const InputContext&) { return counted_dataset(worker.rank() == 0 ? 3 : 0).batch(2).repeat(); });
    auto batches = endless.iterate();
    if (worker.rank() == 1) {
      EXPECT_THAT([&] { return batches.get_next(); },
                  ThrowsMessage<InvalidArgument>(
                      ContainsRegex("the data of worker 1 \\(host .+\\) ended after 0 steps")));
      return;
    }
    static_cast<void>(batches.get_next());
    EXPECT_THAT([&] { return strategy.reduce(ReduceOp::kSum, strategy.run([] { return 1.0; })); },
                ThrowsMessage<Aborted>(HasSubstr("worker 1")));
  });
}

TEST(InputWorkerCase, DifferenceAnEndlessDatasetThatOnlyOneWorkerFindsEmptyIsTheErrorOfAll) {
  as_workers(2, [&](Bootstrap& worker) {
    const Strategy strategy = worker_strategy(worker, 1);
    auto batches =
        strategy.distribute_dataset(counted_dataset(worker.rank() == 0 ? 3 : 0).batch(2).repeat()).iterate();
    EXPECT_THAT(
        [&] {
          static_cast<void>(batches.get_next());
          return strategy.reduce(ReduceOp::kSum, strategy.run([] { return 1.0; }));
        },
        ThrowsMessage<InvalidArgument>(HasSubstr("ends its pass over a distributed dataset after 0 steps")));
  });
}

TEST(InputWorkerCase, DifferenceDroppedRemaindersEndThePassOfAllWithTheFirst) {
  const Distribution longer_on_the_second = [](const Strategy& strategy, int worker) {
    return strategy.distribute_datasets_from_function(
        [&](const InputContext&) { return Dataset<Tensor>::range(4 + 2 * worker).batch(2, true); });
  };
  expect_parts(1, longer_on_the_second, {PartSteps{{{0, 1}}, {{2, 3}}}, PartSteps{{{0, 1}}, {{2, 3}}}});
}

}  // namespace
}  // namespace cohort::testing
